package foreign

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/wire/hdl"
)

// Target is what a file is for.
type Target string

// The files that are written for Handle servers.
const (
	HandleJSON  Target = "handle-json"
	HandleBatch Target = "handle-batch"
)

// Targets returns all of them.
func Targets() []Target {
	return []Target{HandleJSON, HandleBatch, Htaccess, NginxMap, DataCitePage, EZIDTable}
}

// Exported is what became of the records of an export.
type Exported struct {
	Records int // written
	Secrets int // values of type HS_SECKEY, which are never written
	Others  int // records that are not handles; for web servers those without a location
	Hidden  int // records that are reserved or for some readers only; for Handle servers those that are withdrawn too
	Choices int // records with several locations, of which the file has the first
	Unsaid  int // records of which the file can't say all; for DataCite and EZID
	Rules   int // of namespaces, that were written for web servers
}

// Export writes the handles among the records whose identifiers begin with one of the prefixes. A Handle
// server has neither records that are reserved nor those for some readers only, so it leaves them
// out, and those that are withdrawn. It calls told with what else a file can't say, and progress for
// each record; progress may be nil.
func Export(ctx context.Context, from bulk.Source, keys []stele.NamespaceKey, out io.Writer, to Target, told func(handle string, what error), progress func(rows int)) (Exported, error) {
	x := &exporter{out: out, told: told}
	write, end := x.batch, func() error { return nil }
	if to == HandleJSON {
		if err := x.begin(ctx, from, keys); err != nil {
			return x.done, err
		}
		write, end = x.record, x.end
	}
	for _, key := range withAuthorities(keys) {
		for rec, err := range from.Export(ctx, key.NamespaceKey, false) {
			if err != nil {
				return x.done, err
			}
			if key.only && rec.ID.String() != key.Prefix {
				continue
			}
			if progress != nil {
				progress(1)
			}
			switch {
			case rec.ID.Scheme() != handleScheme:
				x.done.Others++
				continue
			case rec.State != stele.Active || rec.Redacted || len(rec.Readers) > 0:
				x.done.Hidden++
				continue
			}
			if err := write(strings.TrimPrefix(destination.Shown(rec), handleMark), x.values(rec)); err != nil {
				return x.done, err
			}
		}
	}
	return x.done, end()
}

// beginning is what the names of some records begin with; only: it is one name.
type beginning struct {
	stele.NamespaceKey
	only bool
}

// withAuthorities adds to prefixes the records that describe them: 0.NA/20.500.12345 belongs to
// 20.500.12345/, and a server can't serve the one without the other.
func withAuthorities(keys []stele.NamespaceKey) (all []beginning) {
	for _, key := range keys {
		bare, whole := strings.CutSuffix(strings.TrimPrefix(key.Prefix, handleMark), "/")
		if key.Scheme == handleScheme && whole && bare != "" && !strings.Contains(bare, "/") && bare+"/" != authorities {
			all = append(all, beginning{stele.NamespaceKey{Scheme: handleScheme, Prefix: handleMark + authorities + bare}, true})
		}
		all = append(all, beginning{key, false})
	}
	return all
}

// exporter is an export under way.
type exporter struct {
	out  io.Writer
	told func(string, error)
	done Exported
}

// values returns the values of a record, without secrets.
func (x *exporter) values(rec *stele.Record) []stele.HandleValue {
	values := destination.Values(rec, rec.Targets)
	return slices.DeleteFunc(slices.Clone(values), func(v stele.HandleValue) bool {
		if isSecret(v.Type) {
			x.done.Secrets++
			return true
		}
		return false
	})
}

// begin writes the beginning of a JSON export: the homed prefixes are those that have a namespace.
func (x *exporter) begin(ctx context.Context, from bulk.Source, keys []stele.NamespaceKey) error {
	prefixes := []string{}
	for ns, err := range from.Namespaces(ctx) {
		if err != nil {
			return err
		}
		bare, whole := strings.CutSuffix(strings.TrimPrefix(ns.Prefix, handleMark), "/")
		if ns.Scheme == handleScheme && whole && !strings.Contains(bare, "/") && ns.Version > 0 && slices.ContainsFunc(keys, func(key stele.NamespaceKey) bool {
			return key.Scheme == ns.Scheme && strings.HasPrefix(ns.Prefix, key.Prefix)
		}) {
			prefixes = append(prefixes, authorities+bare)
		}
	}
	list, err := indented(prefixes, "  ")
	if err != nil {
		return err
	}
	_, err = x.out.Write(slices.Concat([]byte("{\n  \"homedPrefixes\": "), list, []byte(",\n  \"handleRecords\": {")))
	return err
}

func (x *exporter) end() error {
	_, err := io.WriteString(x.out, "\n  }\n}\n")
	return err
}

// record writes a record of a JSON export.
func (x *exporter) record(handle string, values []stele.HandleValue) error {
	shown := struct {
		Handle string             `json:"handle"`
		Values []handlejson.Value `json:"values"`
	}{handle, make([]handlejson.Value, len(values))}
	for i := range values {
		shown.Values[i] = handlejson.Exact(&values[i])
	}
	text, err := indented(shown, "    ")
	if err != nil {
		return err
	}
	comma := []byte(",\n    ")
	if x.done.Records == 0 {
		comma = comma[1:]
	}
	x.done.Records++
	_, err = x.out.Write(slices.Concat(comma, handlejson.Quote(handle), []byte(": "), text))
	return err
}

// indented writes JSON as the reference implementation does, with two spaces.
func indented(v any, before string) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(before, "  ")
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// batch writes a record of a batch file. Values that the file can't say are told.
func (x *exporter) batch(handle string, values []stele.HandleValue) error {
	var b bytes.Buffer
	b.WriteString("CREATE " + handle + "\n")
	written := 0
	for i := range values {
		v := &values[i]
		keyword, data, err := batchText(v)
		if err != nil {
			x.told(handle, err)
			continue
		}
		if len(v.References) > 0 {
			x.told(handle, stele.Messagef("export.batch-references", "the references of the value {index} are left out: a batch file has none", v.Index))
		}
		b.WriteString(strconv.FormatUint(uint64(v.Index), 10) + " " + v.Type + " " + strconv.FormatUint(uint64(v.TTL), 10) + " " + digitsOf(v.Permissions) + " " + keyword + " " + data + "\n")
		written++
	}
	if written == 0 {
		x.told(handle, stele.Messagef("export.batch-no-values", "it has no value that a batch file can say, and is left out"))
		return nil
	}
	b.WriteString("\n")
	x.done.Records++
	_, err := x.out.Write(b.Bytes())
	return err
}

func digitsOf(p stele.Permission) string {
	b := []byte("0000")
	for i := range b {
		b[i] += byte(p >> (3 - i) & 1)
	}
	return string(b)
}

// batchText returns the data of a value as a batch file has it.
func batchText(v *stele.HandleValue) (keyword, data string, err error) {
	switch {
	case v.TTLAbsolute:
		return "", "", stele.Messagef("export.batch-absolute-ttl", "the value {index} is left out: its TTL is a date, and that of a batch file is a number of seconds", v.Index)
	case strings.ContainsAny(v.Type, " \t\r\n"):
		return "", "", stele.Messagef("export.batch-type", "the value {index} is left out: its type has a space", v.Index)
	case destination.HasType(v.Type, "HS_ADMIN"):
		if a, err := hdl.ParseAdmin(v.Data); err == nil && !a.Legacy && a.Permissions>>12 == 0 && isOneLine(a.Identity.Handle) {
			return "ADMIN", strconv.FormatUint(uint64(a.Identity.Index), 10) + ":" + a.Permissions.Batch() + ":" + a.Identity.Handle, nil
		}
	case destination.HasType(v.Type, "HS_VLIST"):
		if list, ok := batchList(v.Data); ok {
			return "LIST", list, nil
		}
	}
	if text := string(v.Data); utf8.ValidString(text) && isOneLine(text) {
		return "UTF8", text, nil
	}
	return "", "", stele.Messagef("export.batch-data", "the value {index} is left out: a batch file can't say its data, which is not a line of text", v.Index)
}

// isOneLine reports whether a text stays the same at the end of a line.
func isOneLine(text string) bool {
	if text == "" || strings.TrimSpace(text) != text {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}

func batchList(data []byte) (string, bool) {
	refs, err := hdl.ParseReferences(data)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	for _, ref := range refs {
		if !isOneLine(ref.Handle) || strings.Contains(ref.Handle, ";") || !utf8.ValidString(ref.Handle) {
			return "", false
		}
		b.WriteString(strconv.FormatUint(uint64(ref.Index), 10) + ":" + ref.Handle + ";")
	}
	return b.String(), true
}
