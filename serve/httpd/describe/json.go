package describe

// appendJSON writes the record's own JSON, the object that the API speaks, as the
// public may see it.
func appendJSON(b []byte, f *facts) ([]byte, error) {
	return append(f.record.AppendJSON(b), '\n'), nil
}
