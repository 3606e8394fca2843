package foreign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/store/mem"
)

// source is a registrar as exports read it.
type source struct{ *registrar.Registrar }

func (s source) Export(ctx context.Context, key stele.NamespaceKey, _ bool) iter.Seq2[*stele.Record, error] {
	return s.Scan(ctx, key, "")
}

type ticks struct{}

func (ticks) Add(int) {}
func (ticks) Tick()   {}

// registry is an empty registry, and the context of its administrator.
func registry(t *testing.T) (*registrar.Registrar, context.Context) {
	t.Helper()
	r := registrar.New(mem.New(time.Now), known, registrar.Options{Now: time.Now})
	return r, auth.With(t.Context(), auth.Principal{Name: "root", Admin: true})
}

// imported imports a text, and returns what became of it.
func imported(t *testing.T, r *registrar.Registrar, ctx context.Context, text []byte, o foreign.Options, fo bulk.FileOptions) bulk.Counts {
	t.Helper()
	o.Schemes, o.System = known, "handle"
	files := opened(t, text)
	s, err := foreign.Open(files, o)
	if err != nil {
		t.Fatal(err)
	}
	fo.MaxErrors, fo.ChunkRows, fo.Complaints = -1, 3, t.Output()
	im, err := bulk.NewRowsImport(ctx, r, s, files[0], s.Key(), fo)
	if err != nil {
		t.Fatal(err)
	}
	if err := im.Run(ctx, func() bulk.Progress { return ticks{} }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return im.Mark.Counts
}

// exported is a file for a Handle server.
func exported(t *testing.T, r *registrar.Registrar, ctx context.Context, to foreign.Target) ([]byte, []string, foreign.Exported) {
	t.Helper()
	var b bytes.Buffer
	var told []string
	done, err := foreign.Export(ctx, source{r}, []stele.NamespaceKey{{Scheme: "hdl"}, {Scheme: "ark"}}, &b, to, func(handle string, what error) { told = append(told, handle+": "+what.Error()) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), told, done
}

// handleFile is what an export has, by name.
type handleFile struct {
	Prefixes []string                              `json:"homedPrefixes"`
	Records  map[string]map[string]json.RawMessage `json:"handleRecords"`
}

func parsed(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var file handleFile
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	all := make(map[string]any)
	for name, record := range file.Records {
		var values []map[string]any
		if err := json.Unmarshal(record["values"], &values); err != nil {
			t.Fatal(err)
		}
		kept := []map[string]any{}
		for _, v := range values {
			if v["type"] != "HS_SECKEY" {
				kept = append(kept, v)
			}
		}
		all[name] = kept
	}
	return all
}

// What is imported from a JSON export is exported with the same values, except secrets; importing it
// twice changes nothing.
func TestRoundTrip(t *testing.T) {
	seeds, err := os.ReadFile("../../document/handlejson/testdata/seed-records.json")
	if err != nil {
		t.Fatal(err)
	}
	r, ctx := registry(t)
	o := foreign.Options{Admins: true, Namespaces: true, Has: func(prefix string) bool {
		_, err := r.Namespace(ctx, stele.NamespaceKey{Scheme: "hdl", Prefix: prefix})
		return err == nil
	}}
	if got := imported(t, r, ctx, seeds, o, bulk.FileOptions{}); got != (bulk.Counts{New: 8, Namespaces: 3}) {
		t.Errorf("imported %+v", got)
	}
	for _, fo := range []bulk.FileOptions{{}, {Update: true}, {Update: true, Replace: true}, {Fresh: true}} {
		o.Merges = fo.Update && !fo.Replace
		if got := imported(t, r, ctx, seeds, o, fo); got != (bulk.Counts{Unchanged: 8}) {
			t.Errorf("imported again with %+v: %+v", fo, got)
		}
	}
	text, _, done := exported(t, r, ctx, foreign.HandleJSON)
	if done.Records != 8 || done.Others != 0 || done.Hidden != 0 {
		t.Errorf("exported %+v", done)
	}
	if got, want := parsed(t, text), parsed(t, seeds); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	var file handleFile
	if err := json.Unmarshal(text, &file); err != nil || len(file.Prefixes) != 3 {
		t.Errorf("prefixes %v, %v", file.Prefixes, err)
	}

	// Another registry takes the file, and its export is the same, byte for byte.
	other, ctx2 := registry(t)
	imported(t, other, ctx2, text, foreign.Options{Admins: true, Namespaces: true}, bulk.FileOptions{})
	if again, _, _ := exported(t, other, ctx2, foreign.HandleJSON); !bytes.Equal(again, text) {
		t.Errorf("the second export is\n%s\nwant\n%s", again, text)
	}
}

// A batch file has what it can say, and the rest is told.
func TestExportBatch(t *testing.T) {
	seeds, err := os.ReadFile("../../document/handlejson/testdata/seed-records.json")
	if err != nil {
		t.Fatal(err)
	}
	r, ctx := registry(t)
	imported(t, r, ctx, seeds, foreign.Options{Admins: true}, bulk.FileOptions{})
	ark, err := known.Parse("ark:12345/x1")
	if err != nil {
		t.Fatal(err)
	}
	gone, err := known.Parse("20.500.99999/GONE")
	if err != nil {
		t.Fatal(err)
	}
	errs, err := r.Ingest(ctx, []*stele.Record{
		{ID: ark, State: stele.Active}, {ID: gone, State: stele.Withdrawn, Tombstone: &stele.Tombstone{Reason: "It is gone."}},
	}, registrar.ImportOptions{})
	if err != nil || errs[0] != nil || errs[1] != nil {
		t.Fatal(errs, err)
	}
	text, told, done := exported(t, r, ctx, foreign.HandleBatch)
	if done.Records != 8 || done.Others != 1 || done.Hidden != 1 {
		t.Errorf("exported %+v", done)
	}
	for _, want := range []string{
		"0.NA/20.500.99999: the value 1 is left out", "0.NA/20.500.99999: the value 300 is left out", "20.500.99999/REF-1: the references of the value 1 are left out",
		"20.500.99999/REF-1: the value 2 is left out: its TTL is a date",
	} {
		if !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("it is not told: %s\n%s", want, strings.Join(told, "\n"))
		}
	}
	other, ctx2 := registry(t)
	if got := imported(t, other, ctx2, text, foreign.Options{Admins: true}, bulk.FileOptions{}); got != (bulk.Counts{New: 8}) {
		t.Errorf("the batch file gives %+v\n%s", got, text)
	}
	if again, _, _ := exported(t, other, ctx2, foreign.HandleBatch); !bytes.Equal(again, text) {
		t.Errorf("the second export is\n%s\nwant\n%s", again, text)
	}
}
