package deposit

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/stele-id/stele"
)

// made returns the text of a list and the name that fits it.
func named(text string) (name string, data []byte) {
	return fmt.Sprintf("deposits/20210502T110000Z-7-%s.jsonl", sumOf([]byte(text))[:16]), []byte(text)
}

const (
	someSum  = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	goodHead = `{"deposit":1,"at":"2021-05-02T11:00:00Z","bundle":{"form":1,"origin":"names.example.org/.log","generation":"00","changes":7,"at":"2021-05-02T10:00:00Z"},"manifest":"` + someSum + `","records":1,"versions":1,"bytes":3,"objects":`
	goodLine = `{"object":"` + someSum + `","size":3,"stored":3,"files":[{"name":"bagit.txt","size":3}]}` + "\n"
)

func TestHostileLists(t *testing.T) {
	name, text := named(goodHead + "1}\n" + goodLine)
	if _, err := parseList(name, text); err != nil {
		t.Fatal(err)
	}
	if _, err := parseList(name, append(text, ' ')); stele.KindOf(err) != stele.Invalid {
		t.Errorf("another text than the name says: %v", err)
	}
	if _, err := parseList(strings.Replace(name, "-7-", "-8-", 1), text); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("another change than the name says: %v", err)
	}
	object := func(rest string) string { return `{"object":"` + someSum + `",` + rest + "}\n" }
	for what, c := range map[string]struct{ text, line string }{
		"nothing":           {"", "line 1"},
		"no objects":        {goodHead + "0}\n", "line 1"},
		"too few":           {goodHead + "2}\n" + goodLine, "line 1"},
		"too many":          {goodHead + "1}\n" + goodLine + goodLine, "line 1"},
		"a number":          {goodHead + "9999999999}\n" + goodLine, "line 1"},
		"a negative number": {goodHead + "-1}\n" + goodLine, "line 1"},
		"another form":      {strings.Replace(goodHead, `"deposit":1`, `"deposit":2`, 1) + "1}\n" + goodLine, "line 1"},
		"nested":            {strings.Repeat("[", 1<<20) + "\n" + goodLine, "line 1"},
		"nested in a line":  {goodHead + "1}\n" + strings.Repeat(`{"files":[`, 1<<17) + "\n", "line 2"},
		"more members":      {goodHead + "1}\n" + strings.Replace(goodLine, `"size":3`, `"more":1,"size":3`, 1), "line 2"},
		"twice":             {goodHead + "1}\n" + strings.Replace(goodLine, `"size":3`, `"size":3,"size":3`, 1), "line 2"},
		"a path":            {goodHead + "1}\n" + strings.Replace(goodLine, someSum, "../../../../../../../../../../../../../../../../../../../../etc/pa", 1), "line 2"},
		"too large":         {goodHead + "1}\n" + object(`"size":9999999999,"stored":9999999999,"files":[{"name":"bagit.txt","size":9999999999}]`), "line 2"},
		"stored too large":  {goodHead + "1}\n" + object(`"gzip":true,"size":3,"stored":9999999999,"files":[{"name":"bagit.txt","size":3}]`), "line 2"},
		"other stored":      {goodHead + "1}\n" + object(`"size":3,"stored":4,"files":[{"name":"bagit.txt","size":3}]`), "line 2"},
		"a longer file":     {goodHead + "1}\n" + object(`"size":3,"stored":3,"files":[{"name":"bagit.txt","size":4}]`), "line 2"},
		"a shorter file":    {goodHead + "1}\n" + object(`"size":3,"stored":3,"files":[{"name":"bagit.txt","size":2}]`), "line 2"},
		"overflow":          {goodHead + "1}\n" + object(`"size":3,"stored":3,"files":[{"name":"a","size":9223372036854775807},{"name":"b","size":4}]`), "line 2"},
		"no file":           {goodHead + "1}\n" + object(`"size":3,"stored":3`), "line 2"},
		"nothing in it":     {goodHead + "1}\n" + object(`"size":0,"stored":0`), "line 2"},
		"2^20 of nothing":   {goodHead + "1048576}\n" + strings.Repeat("{}\n", 1<<20), "line 2"},
		"2^20 objects":      {goodHead + "1048577}\n" + strings.Repeat(goodLine, 3), "line 1"},
		"many files":        {goodHead + "1}\n" + object(`"size":0,"stored":0,"files":[`+strings.Repeat(`{"name":"a","size":0},`, maxNames)+`{"name":"a","size":0}]`), "line 2"},
	} {
		name, text := named(c.text)
		_, err := parseList(name, text)
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), c.line) {
			t.Errorf("%s: %.300v", what, err)
		}
	}
	for _, name := range []string{"", "deposits/x.jsonl", "deposits/20210502T110000Z-7-zzzzzzzzzzzzzzzz.jsonl", "deposits/20210502T110000Z-07-aaaaaaaaaaaaaaaa.jsonl", "x/20210502T110000Z-7-aaaaaaaaaaaaaaaa.jsonl"} {
		if _, ok := parseListName(name); ok {
			t.Errorf("%q is taken", name)
		}
	}
	for _, name := range []string{"", "objects", "objects/aa/" + someSum[1:], "objects/ab/" + someSum, "objects/aa/" + someSum + ".part", "objects/" + someSum, "other/aa/" + someSum} {
		if _, ok := parseObjectName(name); ok {
			t.Errorf("%q is taken", name)
		}
	}
}

// memory is a place that answers what a test says.
type memory map[string][]byte

func (m memory) Put(context.Context, string, []byte) error { return nil }
func (m memory) Close() error                              { return nil }
func (m memory) Get(_ context.Context, name string, most int64) ([]byte, error) {
	data, ok := m[name]
	switch {
	case !ok:
		return nil, &stele.Error{Op: op, Kind: stele.NotFound}
	case int64(len(data)) > most:
		return nil, tooLong(name, most)
	}
	return data, nil
}
func (m memory) List(_ context.Context, folder string, each func(string, int64) error) error {
	for name, data := range m {
		if strings.HasPrefix(name, folder+"/") {
			if err := each(name, int64(len(data))); err != nil {
				return err
			}
		}
	}
	return nil
}

// endless is a place whose lists never end.
type endless struct{ memory }

func (endless) List(_ context.Context, folder string, each func(string, int64) error) error {
	for n := 0; ; n++ {
		if err := each(fmt.Sprintf("%s/20210502T110000Z-%d-aaaaaaaaaaaaaaaa.jsonl", folder, n), 1); err != nil {
			return err
		}
	}
}

func TestHostilePlace(t *testing.T) {
	h := newHouse(t)
	h.fill(3)
	for _, d := range []Destination{endless{}, &patient{endless{}, noWait}} {
		if _, err := All(h.ctx, d); stele.KindOf(err) != stele.Exhausted {
			t.Errorf("a list without an end: %v", err)
		}
	}
	// Objects that are not what the list says: of another length, not compressed, a bomb, with other content.
	pack := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(data)
		_ = z.Close()
		return b.Bytes()
	}
	content := []byte("BagIt-Version: 1.0\n")
	good := pack(content)
	bomb := pack(make([]byte, 64<<20))
	for what, c := range map[string]struct {
		data   []byte
		stored int
		want   string
	}{
		"longer":      {append(bytes.Clone(good), 0), len(good), "more than"},
		"shorter":     {good[:len(good)-1], len(good), "bytes at the place"},
		"another":     {pack([]byte("BagIt-Version: 9.0\n")), len(pack([]byte("BagIt-Version: 9.0\n"))), "SHA-256"},
		"a bomb":      {bomb, len(bomb), "SHA-256"},
		"not gzip":    {content, len(content), "decompressed"},
		"half a gzip": {good[:len(good)-8], len(good) - 8, "decompressed"},
	} {
		o := &Object{Sum: sumOf(content), Gzip: true, Size: int64(len(content)), Stored: int64(c.stored), about: "bagit.txt"}
		_, err := o.read(h.ctx, memory{o.name(): c.data})
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), o.name()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A list of other files than bundles have.
	for _, file := range []string{"../../etc/passwd", "data/x", "manifest-sha256.txt"} {
		name, text := named(goodHead + "1}\n" + strings.NewReplacer(someSum, sumOf([]byte("abc")), "bagit.txt", file).Replace(goodLine))
		place := memory{name: text, (&Object{Sum: sumOf([]byte("abc"))}).name(): []byte("abc")}
		l, err := Last(h.ctx, place, time.Time{})
		h.must(err)
		if _, err := (&Rebuild{From: place, List: l}).Check(h.ctx, h.options()); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%s: %v", file, err)
		}
	}
	// All objects are right, and the list is of another bundle.
	to, _ := newFolder(t)
	h.deposit(to)
	l := h.last(to)
	l.Manifest = someSum
	if _, err := (&Rebuild{From: to, List: l}).Check(h.ctx, h.options()); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "another manifest") {
		t.Errorf("of another bundle: %v", err)
	}
}

func FuzzList(f *testing.F) {
	f.Add(goodHead + "1}\n" + goodLine)
	f.Add(goodHead + "2}\n" + strings.Replace(goodLine, `"size":3}]`, `"size":6}]`, 1) + `{"object":"` + someSum + `","gzip":true,"size":3,"stored":30}` + "\n")
	f.Add("")
	f.Add(goodHead)
	f.Fuzz(func(t *testing.T, text string) {
		name, data := named(text)
		l, err := parseList(name, data)
		if err != nil {
			if stele.KindOf(err) != stele.Invalid {
				t.Errorf("the error is of the kind %v: %v", stele.KindOf(err), err)
			}
			return
		}
		again, err := l.encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("it is written otherwise: %v", err)
		}
	})
}
