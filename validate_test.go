package stele_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/recordtest"
)

// good is a record without problems, to be spoiled.
func good() *stele.Record {
	r := recordtest.Rich()
	r.Version = 7
	return r
}

func TestValidateGood(t *testing.T) {
	for _, r := range []*stele.Record{good(), {ID: stele.StoredID("ab", "ab:x"), State: stele.Active}, {ID: stele.StoredID("ab", "ab:x"), State: stele.Reserved}} {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r := recordtest.GoodRecord.Draw(t, "record")
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		n := recordtest.GoodNamespace.Draw(t, "namespace")
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// Any record at all is judged, the same each time, and what passes can be kept.
func TestValidateAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := recordtest.AnyRecord.Draw(t, "record")
		err := r.Validate()
		if again := r.Validate(); fmt.Sprint(err) != fmt.Sprint(again) {
			t.Fatalf("%v, and then %v", err, again)
		}
		if problems, ok := errors.AsType[stele.Problems](err); err != nil && (!ok || !errors.Is(err, stele.Invalid) || len(problems) == 0) {
			t.Fatal(err)
		}
		if err := recordtest.AnyNamespace.Draw(t, "namespace").Validate(); err != nil && !errors.Is(err, stele.Invalid) {
			t.Fatal(err)
		}
	})
}

func TestValidateRecord(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*stele.Record)
		want  string
	}{
		"no name":           {func(r *stele.Record) { r.ID = stele.ID{} }, "id: is missing"},
		"same spelling":     {func(r *stele.Record) { r.Spelling = r.ID.String() }, "spelling: is the identifier itself; leave it out"},
		"odd spelling":      {func(r *stele.Record) { r.Spelling = "a\u202eb" }, "spelling: at byte 1: bidirectional control character"},
		"no alias":          {func(r *stele.Record) { r.Aliases = append(r.Aliases, stele.ID{}) }, "aliases[2]: is missing"},
		"own alias":         {func(r *stele.Record) { r.Aliases[1] = r.ID }, "aliases[1]: is the record's identifier"},
		"alias twice":       {func(r *stele.Record) { r.Aliases[1] = r.Aliases[0] }, "aliases[1]: is the same as aliases[0]"},
		"many aliases":      {func(r *stele.Record) { r.Aliases = make([]stele.ID, stele.MaxAliases+1) }, "aliases: has 1001 items; 1000 are the most"},
		"no state":          {func(r *stele.Record) { r.State, r.Tombstone = "", nil }, `state: "" is not a state`},
		"odd state":         {func(r *stele.Record) { r.State = "Withdrawn" }, `state: "Withdrawn" is not a state`},
		"no tombstone":      {func(r *stele.Record) { r.Tombstone = nil }, "tombstone: is missing"},
		"tombstone":         {func(r *stele.Record) { r.State = stele.Active }, "tombstone: a record that is active has none"},
		"no reason":         {func(r *stele.Record) { r.Tombstone.Reason = "\n\t " }, "tombstone.reason: is missing"},
		"odd reason":        {func(r *stele.Record) { r.Tombstone.Reason = "a\x00" }, "tombstone.reason: at byte 1: control character"},
		"own replacement":   {func(r *stele.Record) { r.Tombstone.Replacement = r.ID }, "tombstone.replacement: is the record itself"},
		"late tombstone":    {func(r *stele.Record) { r.Tombstone.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "tombstone.at: the year 10000"},
		"many targets":      {func(r *stele.Record) { r.Targets = make([]stele.Target, 10_000) }, "targets: has 10000 items; 1000 are the most"},
		"service":           {func(r *stele.Record) { r.Targets[1].Service = "n2l" }, `targets[1].service: "n2l" is not a service; use N2L`},
		"url":               {func(r *stele.Record) { r.Targets[1].URL = "file:///x" }, "targets[1].url: "},
		"type":              {func(r *stele.Record) { r.Targets[1].Type = "html" }, "targets[1].type: "},
		"language":          {func(r *stele.Record) { r.Targets[1].Language = "pt_BR" }, `targets[1].language: "pt_BR" is not a language tag; write it as in BCP 47`},
		"ttl":               {func(r *stele.Record) { r.Targets[1].TTL = stele.MaxTTL + 1 }, "targets[1].ttl: 2592001 seconds are too long; 2592000 (30 days)"},
		"status":            {func(r *stele.Record) { r.Targets[1].Status = 200 }, "targets[1].status: 200 is not a status of a redirect"},
		"key":               {func(r *stele.Record) { r.Metadata["Titel"] = "" }, `metadata.Titel: "Titel" is not a name of a field`},
		"key of a digit":    {func(r *stele.Record) { r.Metadata["1a"] = "" }, `metadata.1a: "1a" is not a name`},
		"empty key":         {func(r *stele.Record) { r.Metadata[""] = "" }, `metadata[""]`},
		"long key":          {func(r *stele.Record) { r.Metadata[strings.Repeat("a", 65)] = "" }, "is not a name of a field"},
		"long value":        {func(r *stele.Record) { r.Metadata["a"] = strings.Repeat("a", stele.MaxProse+1) }, "metadata.a: has 10001 bytes; 10000 are the most"},
		"return":            {func(r *stele.Record) { r.Metadata["a"] = "a\r\n" }, "metadata.a: at byte 1: a carriage return"},
		"broken value":      {func(r *stele.Record) { r.Metadata["a"] = "12345678é\xe9" }, "metadata.a: at byte 10: byte 0xE9 is not UTF-8"},
		"C1":                {func(r *stele.Record) { r.Metadata["a"] = "\u0085" }, "metadata.a: at byte 0: control character U+0085"},
		"turned":            {func(r *stele.Record) { r.Metadata["a"] = "exe.\u202efdp" }, "metadata.a: at byte 4: U+202E turns the direction of reading"},
		"many fields":       {func(r *stele.Record) { r.Metadata = manyFields(stele.MaxFields + 1) }, "metadata: has 1001 items; 1000 are the most"},
		"level":             {func(r *stele.Record) { r.Persistence.Level = "eternal" }, "persistence.level: "},
		"until":             {func(r *stele.Record) { r.Persistence.Until = "2040" }, "persistence.until: "},
		"statement":         {func(r *stele.Record) { r.Persistence.Statement = "\x7f" }, "persistence.statement: "},
		"index":             {func(r *stele.Record) { r.Values[0].Index = 0 }, "values[0].index: is missing"},
		"index twice":       {func(r *stele.Record) { r.Values[1].Index = 1 }, "values[1].index: is the same as values[0].index"},
		"value's type":      {func(r *stele.Record) { r.Values[1].Type = "" }, "values[1].type: is missing"},
		"value's long type": {func(r *stele.Record) { r.Values[1].Type = strings.Repeat("a", 256) }, "values[1].type: has 256 bytes"},
		"value's odd type":  {func(r *stele.Record) { r.Values[1].Type = "a\n" }, "values[1].type: at byte 1: control character"},
		"data":              {func(r *stele.Record) { r.Values[1].Data = make([]byte, stele.MaxData+1) }, "values[1].data: has 65537 bytes; 65536 are the most"},
		"permissions":       {func(r *stele.Record) { r.Values[1].Permissions = 0x10 }, "values[1].permissions: has bits that mean nothing: 0x10"},
		"reference":         {func(r *stele.Record) { r.Values[0].References[0].Handle = "" }, "values[0].references[0].handle: "},
		"long reference":    {func(r *stele.Record) { r.Values[0].References[0].Handle = strings.Repeat("x", stele.MaxText+1) }, "values[0].references[0].handle: "},
		"broken reference":  {func(r *stele.Record) { r.Values[0].References[0].Handle = "a/\xff" }, "values[0].references[0].handle: "},
		"many references":   {func(r *stele.Record) { r.Values[0].References = make([]stele.HandleReference, 1001) }, "values[0].references: has 1001 items"},
		"many values":       {func(r *stele.Record) { r.Values = make([]stele.HandleValue, stele.MaxValues+1) }, "values: has 1001 items"},
		"reader":            {func(r *stele.Record) { r.Readers[1] = "staff" }, `readers[1]: "staff" is not a user or group; write user: or group:`},
		"nameless reader":   {func(r *stele.Record) { r.Readers[1] = "group:" }, "readers[1]: "},
		"odd reader":        {func(r *stele.Record) { r.Readers[1] = "user:\u200b" }, "readers[1]: "},
		"reader twice":      {func(r *stele.Record) { r.Readers[1] = r.Readers[0] }, "readers[1]: is the same as readers[0]"},
		"many readers":      {func(r *stele.Record) { r.Readers = make([]string, stele.MaxReaders+1) }, "readers: has 1001 items"},
		"created":           {func(r *stele.Record) { r.Created = time.Unix(-1<<40, 0) }, "created: the year "},
		"modified":          {func(r *stele.Record) { r.Modified = time.Unix(1<<40, 0) }, "modified: the year "},
		"by":                {func(r *stele.Record) { r.By = strings.Repeat("a", 256) }, "by: has 256 bytes; 255 are the most"},
		"size":              {func(r *stele.Record) { fill(r, stele.MaxRecord+1) }, "the record has 1048577 bytes; 1048576 are the most"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.spoil(r)
			problems, ok := errors.AsType[stele.Problems](r.Validate())
			if !ok || len(problems) != 1 || !strings.Contains(problems.Error(), c.want) {
				t.Errorf("%v\nwant %s", problems, c.want)
			}
		})
	}
}

func manyFields(n int) stele.Metadata {
	m := make(stele.Metadata)
	for i := range n {
		m[fmt.Sprintf("a%d", i)] = ""
	}
	return m
}

// fill gives the record values until it takes so many bytes in a store.
func fill(r *stele.Record, size int) {
	for i := uint32(10); ; i++ {
		have := r.StoredSize()
		if have == size {
			return
		}
		const frame = 11 // of a value with more than 16 KiB of data
		room := size - have - frame
		if room > stele.MaxData {
			room = stele.MaxData / 2
		}
		r.Values = append(r.Values, stele.HandleValue{Index: i, Type: "x", Data: make([]byte, room), TTL: 1})
	}
}

// A record at the limit is taken.
func TestValidateSize(t *testing.T) {
	r := good()
	fill(r, stele.MaxRecord)
	if size := r.StoredSize(); size != stele.MaxRecord {
		t.Fatalf("%d bytes", size)
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
}

func TestProblems(t *testing.T) {
	var f stele.Report
	if err := f.Err("try", stele.ID{}); err != nil {
		t.Error(err)
	}
	f.Addf("a", "x.y", "is wrong")
	f.Addf("a", "x.y", "is wrong again")
	f.Addf("a.b", "x.y", "is within")
	f.Addf("a[1]", "x.y", "is within too")
	f.Addf("ab", "x.y", "is another")
	f.Addf("", "x.y", "all is wrong")
	f.Addf("c", "x.y", "is told although all is wrong")
	err := f.Err("try", stele.StoredID("x", "x:1"))
	if want := "try x:1: a: is wrong; ab: is another; all is wrong; c: is told although all is wrong"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	sentinel := errors.New("sentinel")
	f.Add("d", sentinel)
	if !errors.Is(f.Err("try", stele.ID{}), sentinel) {
		t.Error("a reason is lost")
	}
	for i := range 200 {
		f.Addf(fmt.Sprintf("list[%d]", i), "x.y", "is wrong")
	}
	if got, _ := errors.AsType[stele.Problems](f.Err("try", stele.ID{})); len(got) != stele.MaxProblems+1 || got[stele.MaxProblems].Error() != "and 105 more problems" {
		t.Errorf("%d problems: %v", len(got), got)
	}
}

// The order of problems does not depend on that of a map.
func TestMetadataKeys(t *testing.T) {
	m := stele.Metadata{"zz": "", "where": "", "aa": "", "who": "", "when": "", "what": "", "x": ""}
	if got := m.Keys(); !slices.Equal(got, []string{"who", "what", "when", "where", "aa", "x", "zz"}) {
		t.Error(got)
	}
}

func BenchmarkValidate(b *testing.B) {
	s, err := stele.NewSchemes(recordtest.Toy("ark"))
	if err != nil {
		b.Fatal(err)
	}
	r, err := document.DecodeRecord(s, []byte(recordtest.Typical))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}
