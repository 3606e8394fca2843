package foreign_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
)

// FuzzPacker: whatever a user sends, the packer returns an error for people, or an archive with paths that stay in it.
func FuzzPacker(f *testing.F) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	text := "RewriteEngine on\n"
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a/.htaccess", Mode: 0o644, Size: int64(len(text))}); err != nil {
		f.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add("a.tar.gz", b.String(), "w3id")
	f.Add("a/.htaccess", text, "auto")
	f.Add("a/../.htaccess", text, "auto")
	f.Add("config/hp.yml", "idspace: HP\nbase_url: /obo/hp\n", "obo")
	f.Add("a.zip", "PK\x03\x04", "auto")
	f.Fuzz(func(t *testing.T, name, text, system string) {
		if system != "auto" && !foreign.IsTree(system) {
			return
		}
		const most = 1 << 20
		p := foreign.NewPacker(system, "", most)
		err := p.Add(name, strings.NewReader(text))
		var sent *foreign.Sent
		if err == nil {
			sent, err = p.End()
		}
		if err != nil {
			if stele.KindOf(err) != stele.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		if len(sent.Archive) > most || !foreign.IsTree(sent.System) || sent.Files == 0 {
			t.Fatalf("%d bytes, %+v", len(sent.Archive), sent.Files)
		}
		in, err := gzip.NewReader(bytes.NewReader(sent.Archive))
		if err != nil {
			t.Fatal(err)
		}
		for files, r := 0, tar.NewReader(in); ; files++ {
			h, err := r.Next()
			if err == io.EOF {
				if files != sent.Files {
					t.Fatalf("%d files, not %d", files, sent.Files)
				}
				return
			}
			if err != nil || h.Typeflag != tar.TypeReg || path.Clean("/"+h.Name) != "/"+h.Name {
				t.Fatalf("%v, %+v", err, h)
			}
		}
	})
}
