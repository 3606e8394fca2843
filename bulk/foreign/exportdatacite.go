package foreign

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/doirecord"
)

// DataCitePage is a page of DataCite's REST API, with all DOIs.
const DataCitePage Target = "datacite-json"

// maxUnsaid is how many records are named of which a page can't say all.
const maxUnsaid = 20

// ExportDataCite writes the DOIs among the records whose identifiers begin with one of the prefixes, as a page of DataCite's REST
// API that --from datacite reads: an object a line. It leaves out records for some readers only and those whose content is
// redacted. Told, progress and the result are those of [Export]; it tells of the first records what the page can't say.
func ExportDataCite(ctx context.Context, from bulk.Source, keys []stele.NamespaceKey, schemes *stele.Schemes, out io.Writer, told func(name string, what error), progress func(rows int)) (done Exported, err error) {
	if _, err := io.WriteString(out, `{"data":[`); err != nil {
		return done, err
	}
	for _, key := range keys {
		for rec, err := range from.Export(ctx, key, false) {
			if err != nil {
				return done, err
			}
			if progress != nil {
				progress(1)
			}
			doi := doirecord.DOI(schemes, rec)
			switch {
			case doi == "":
				done.Others++
				continue
			case rec.Redacted || len(rec.Readers) > 0:
				done.Hidden++
				continue
			}
			line, unsaid, err := dataciteLine(rec, doi)
			if err != nil {
				return done, err
			}
			if len(unsaid) > 0 {
				if done.Unsaid++; done.Unsaid <= maxUnsaid {
					told(doi, stele.Messagef("export.datacite-unsaid", "DataCite has no attributes for {fields}", strings.Join(unsaid, ", ")))
				}
			}
			if done.Records++; done.Records > 1 {
				line = append([]byte(",\n"), line...)
			}
			if _, err := out.Write(line); err != nil {
				return done, err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"total": done.Records})
	if err != nil {
		return done, err
	}
	_, err = io.WriteString(out, `],"meta":`+string(text)+"}\n")
	return done, err
}

// dataciteLine returns the object of a DOI.
func dataciteLine(rec *stele.Record, doi string) (line []byte, unsaid []string, err error) {
	attributes, unsaid := doirecord.Attributes(rec, doi)
	object := struct {
		ID            string         `json:"id"`
		Type          string         `json:"type"`
		Attributes    map[string]any `json:"attributes"`
		Relationships any            `json:"relationships,omitempty"`
	}{doi, "dois", attributes, attributes["relationships"]}
	delete(attributes, "relationships")
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(object)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), unsaid, err
}
