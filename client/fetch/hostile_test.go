package fetch

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBreaks: wherever connections break, and whenever the file changes meanwhile, a whole
// file is one of the files, and never a mixture.
func TestBreaks(t *testing.T) {
	var mu sync.Mutex
	var files [][]byte // that are there one after the other, a request each
	asked := 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		body := files[min(asked, len(files)-1)]
		asked++
		mu.Unlock()
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		mu.Lock()
		files = rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 2000), 1, 4).Draw(r, "files")
		asked = 0
		mu.Unlock()
		limits := rapid.SliceOfN(rapid.Int64Range(0, 3000), 0, 6).Draw(r, "limits")
		n++
		p := openPart(t, filepath.Join(folder, fmt.Sprint(n)))
		f := newFetcher(t, Options{Dial: breaking(limits...), Tries: 20, Pause: time.Microsecond})
		info, err := f.File(t.Context(), Request{Location: server}, p)
		if err != nil {
			r.Fatal(err)
		}
		got := content(t, p)
		found := false
		for _, body := range files {
			found = found || string(body) == got
		}
		if !found || info.Size != int64(len(got)) || p.SHA256() != sha256.Sum256([]byte(got)) {
			r.Errorf("%+v with %q", info, got)
		}
		_ = p.Remove()
	})
}

// FuzzHead: whatever the header of an answer says, the offer continues the part, or begins
// anew.
func FuzzHead(f *testing.F) {
	f.Add(200, int64(5), "", `"1"`, "", "", int64(0))
	f.Add(206, int64(5), "bytes 5-9/10", `"1"`, "", "", int64(5))
	f.Add(206, int64(5), "bytes 5-9/*", "W/\"1\"", "", "", int64(5))
	f.Add(206, int64(-1), "bytes 0-9/10", "", "", "", int64(0))
	f.Add(416, int64(0), "bytes */10", "", "", "", int64(10))
	f.Add(302, int64(0), "", "", "file:///etc/passwd", "", int64(0))
	f.Add(307, int64(0), "", "", "//h/x#y", "", int64(0))
	f.Add(200, int64(-1), "", "", "", "Sun, 15 Nov 2026 14:00:00 GMT", int64(0))
	f.Fuzz(func(t *testing.T, status int, length int64, span, tag, location, modified string, from int64) {
		if from < 0 || length < -1 {
			return
		}
		u := &url.URL{Scheme: "https", Host: "h", Path: "/a"}
		m := &mark{ETag: `"1"`, Size: -1}
		resp := &http.Response{StatusCode: status, ContentLength: length, ProtoMajor: 1, Header: http.Header{}}
		for name, value := range map[string]string{"Content-Range": span, "ETag": tag, "Location": location, "Last-Modified": modified, "Date": "Sun, 15 Nov 2026 15:00:00 GMT"} {
			resp.Header.Set(name, value)
		}
		o, next, err := readHead(resp, u, from, m)
		switch {
		case err != nil:
		case next != nil:
			if next.Host == "" || next.User != nil || !strings.Contains(" http https ftp ", " "+next.Scheme+" ") {
				t.Errorf("%q leads to %v", location, next)
			}
		case o.from < 0:
			if status != 416 || o.size != from {
				t.Errorf("%+v is complete", o)
			}
		case o.from != 0 && o.from != from, o.from > 0 && status != 206, o.size >= 0 && o.from > o.size, strings.HasPrefix(o.mark.ETag, "W/"):
			t.Errorf("%+v", o)
		}
	})
}
