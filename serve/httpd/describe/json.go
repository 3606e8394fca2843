package describe

import "github.com/stele-id/stele/document"

// appendJSON writes the record's own JSON, the object that the API speaks, as the
// public may see it.
func appendJSON(b []byte, f *facts) ([]byte, error) {
	return append(document.AppendRecord(b, f.record), '\n'), nil
}
