package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/servertest"
)

// TestNginx: from a real server, whole and in pieces.
func TestNginx(t *testing.T) {
	folder := t.TempDir()
	want := some(3 << 20)
	writeFile(t, filepath.Join(folder, "a/b c.bin"), want)
	host := startNginx(t, folder, "location /moved { return 302 /a/b%20c.bin; } location /far { return 301 ftp://127.0.0.1:1/x; } location /away { return 302 file:///etc/passwd; }")
	for _, location := range []string{"/a/b%20c.bin", "/moved", "/a/b%20c.bin#part"} {
		p := newPart(t)
		var told []int64
		info, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: "http://user:secret@" + host + location, Progress: func(done, total int64) {
			told = append(told, done)
			if total != int64(len(want)) {
				t.Errorf("it says that there are %d bytes", total)
			}
		}}, p)
		if err != nil || info.Size != int64(len(want)) || info.Resumed != 0 || !info.InClear || info.Open || info.Type != "text/plain" && info.Type != "application/octet-stream" {
			t.Errorf("%s: %+v, %v", location, info, err)
		}
		if content(t, p) != string(want) || p.SHA256() != sha256.Sum256(want) {
			t.Errorf("%s: something else came", location)
		}
		if !slices.IsSorted(told) || len(told) == 0 || told[len(told)-1] != int64(len(want)) {
			t.Errorf("%s: told of %d steps", location, len(told))
		}
	}
	for location, text := range map[string]string{"/none": "it is not there", "/away": "only http, https and ftp are followed", "/far": "refused"} {
		_, err := newFetcher(t, Options{Tries: 1}).File(t.Context(), Request{Location: "http://" + host + location}, newPart(t))
		if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "passwd\n") {
			t.Errorf("%s: %v", location, err)
		}
	}
}

// TestNginxResume: connections break, and the fetch resumes.
func TestNginxResume(t *testing.T) {
	folder := t.TempDir()
	want := some(3 << 20)
	name := filepath.Join(folder, "a.bin")
	writeFile(t, name, want)
	hour := time.Now().Add(-time.Hour)
	if err := os.Chtimes(name, hour, hour); err != nil {
		t.Fatal(err)
	}
	for about, more := range map[string]string{"ETag": "", "Last-Modified": "etag off;"} {
		t.Run(about, func(t *testing.T) {
			host := startNginx(t, folder, more)
			p := newPart(t)
			f := newFetcher(t, Options{Dial: breaking(1<<20, 1<<20)})
			info, err := f.File(t.Context(), Request{Location: "http://" + host + "/a.bin"}, p)
			if err != nil || info.Resumed < 1<<20 || content(t, p) != string(want) || p.SHA256() != sha256.Sum256(want) {
				t.Errorf("%+v, %v", info, err)
			}
			// Another run finds it complete, and asks for nothing.
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			p = openPart(t, p.path)
			info, err = newFetcher(t, Options{}).File(t.Context(), Request{Location: "http://" + host + "/a.bin"}, p)
			if err != nil || info.Resumed != int64(len(want)) || p.SHA256() != sha256.Sum256(want) {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
}

// TestChanged: if the file changes between two attempts, the fetch begins anew; it never
// combines the two.
func TestChanged(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "a.bin")
	first, second := some(2<<20), bytes.Repeat([]byte("new"), 1<<19)
	writeFile(t, name, first)
	host := startNginx(t, folder, "")
	location := "http://" + host + "/a.bin"
	p := newPart(t)
	_, err := newFetcher(t, Options{Dial: breaking(1<<20, 0), Tries: 1}).File(t.Context(), Request{Location: location}, p)
	if stele.KindOf(err) != stele.Unavailable || p.Size() == 0 {
		t.Fatalf("%v, %d bytes", err, p.Size())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, name, second)
	p = openPart(t, p.path)
	info, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: location}, p)
	if err != nil || info.Resumed != 0 || content(t, p) != string(second) || p.SHA256() != sha256.Sum256(second) {
		t.Errorf("%+v, %v", info, err)
	}
	// A part from another location is not resumed either.
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "b.bin"), first)
	p = openPart(t, p.path)
	if info, err = newFetcher(t, Options{}).File(t.Context(), Request{Location: "http://" + host + "/b.bin"}, p); err != nil || info.Resumed != 0 || content(t, p) != string(first) {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestFTP: from a real server, whole, in pieces and changed.
func TestFTP(t *testing.T) {
	folder := t.TempDir()
	want := some(3 << 20)
	writeFile(t, filepath.Join(folder, "pub/deep/a b.bin"), want)
	writeFile(t, filepath.Join(folder, "empty"), nil)
	host := servertest.FTP(t, folder)
	location := "ftp://somebody:secret@" + host + "/pub/deep/a%20b.bin"
	p := newPart(t)
	info, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: location}, p)
	if err != nil || content(t, p) != string(want) || info.Size != int64(len(want)) || !info.InClear || info.Open || p.SHA256() != sha256.Sum256(want) {
		t.Errorf("%+v, %v", info, err)
	}
	// The second connection of each attempt brings the data, and the first two break.
	p = newPart(t)
	info, err = newFetcher(t, Options{Dial: breaking(1<<30, 1<<20, 1<<30, 1<<20)}).File(t.Context(), Request{Location: location}, p)
	if err != nil || info.Resumed < 2<<20 || content(t, p) != string(want) || p.SHA256() != sha256.Sum256(want) {
		t.Errorf("%+v, %v", info, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	second := append(slices.Clone(want), "more"...)
	writeFile(t, filepath.Join(folder, "pub/deep/a b.bin"), second)
	p = openPart(t, p.path)
	if info, err = newFetcher(t, Options{}).File(t.Context(), Request{Location: location}, p); err != nil || info.Resumed != 0 || content(t, p) != string(second) {
		t.Errorf("%+v, %v", info, err)
	}
	p = newPart(t)
	if info, err = newFetcher(t, Options{}).File(t.Context(), Request{Location: "ftp://" + host + "/empty"}, p); err != nil || info.Size != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	for path, kind := range map[string]stele.Kind{"/none": stele.NotFound, "/none/a": stele.NotFound, "/pub": stele.NotFound, "/": stele.Invalid, "/a%0d%0aDELE%20b": stele.Invalid} {
		if _, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: "ftp://" + host + path}, newPart(t)); err == nil || stele.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", path, err, kind)
		}
	}
	text, info, err := newFetcher(t, Options{}).Read(t.Context(), Request{Location: location}, 1<<10)
	if err == nil || !strings.Contains(err.Error(), "longer than the 1024 bytes") {
		t.Errorf("%d bytes, %+v, %v", len(text), info, err)
	}
}

// TestTruncated: a body that ends too early never counts as whole.
func TestTruncated(t *testing.T) {
	cut := func(w http.ResponseWriter, head string) {
		conn, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buffer.WriteString(head)
		_ = buffer.Flush()
		_ = conn.Close()
	}
	for about, head := range map[string]string{
		"a length":  "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		"chunks":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"a chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
		"a head":    "HTTP/1.1 200 OK\r\nContent-Le",
		"silence":   "",
		"no answer": "no HTTP at all\r\n\r\n",
	} {
		t.Run(about, func(t *testing.T) {
			var asked atomic.Int32
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				cut(w, head)
			})
			_, err := newFetcher(t, Options{Tries: 3}).File(t.Context(), Request{Location: url}, newPart(t))
			if err == nil || stele.KindOf(err) != stele.Unavailable || asked.Load() < 3 {
				t.Errorf("%v after %d attempts", err, asked.Load())
			}
		})
	}
	// If the server does not say how long it is, the size is -1.
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { cut(w, "HTTP/1.0 200 OK\r\n\r\nhello") })
	info, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: url}, newPart(t))
	if err != nil || !info.Open || info.Size != 5 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestEndless: the fetch gives up a body without end, and keeps nothing of it.
func TestEndless(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", strconv.Itoa(1<<40))
		}
		for b := make([]byte, 64<<10); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	})
	for path, q := range map[string]Request{"/": {MaxSize: 1 << 20}, "/sized": {Sizes: []int64{3, 1 << 20}}, "/declared": {MaxSize: 1 << 20}, "/declared/sized": {Sizes: []int64{5}}} {
		q.Location = url + path
		p := newPart(t)
		_, err := newFetcher(t, Options{}).File(t.Context(), q, p)
		if err == nil || stele.KindOf(err) != stele.Conflict || errors.Is(err, ErrSize) != (q.Sizes != nil) {
			t.Errorf("%s: %v", path, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(filepath.Dir(p.path)); len(left) > 0 {
			t.Errorf("%s: %v is left", path, left)
		}
	}
	if _, _, err := newFetcher(t, Options{}).Read(t.Context(), Request{Location: url}, 1000); err == nil || stele.KindOf(err) != stele.Conflict {
		t.Errorf("%v", err)
	}
}

// TestRedirects: they are limited, and lead only to protocols that can be fetched from.
func TestRedirects(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		to := map[string]string{
			"/circle": "/circle", "/pair": "/riap", "/riap": "/pair", "/file": "file:///etc/passwd", "/gopher": "gopher://h/", "/data": "data:text/plain,x",
			"/none": "", "/broken": "http://[", "/relative": "end", "/count": fmt.Sprintf("/count?n=%d", n+1), "/long": "/" + strings.Repeat("x", stele.MaxURL),
			"/user": "http://user:secret@" + r.Host + "/end",
		}
		if r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("Referer") != "" {
			t.Errorf("%v was sent along", r.Header)
		}
		w.Header().Set("Set-Cookie", "a=b")
		target, ok := to[r.URL.Path]
		if !ok || n == 10 {
			_, _ = w.Write([]byte("end"))
			return
		}
		if target != "" {
			w.Header().Set("Location", target)
		}
		w.WriteHeader(http.StatusFound)
	})
	for path, want := range map[string]string{
		"/circle": "in a circle", "/pair": "in a circle", "/file": "are followed", "/gopher": "are followed", "/data": "not a URL|are followed", "/none": "not a URL",
		"/broken": "not a URL", "/count?n=-1": "more than 10 times", "/long": "not a URL", "/relative": "", "/count": "", "/user": "",
	} {
		info, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: url + path}, newPart(t))
		if want == "" {
			if err != nil || info.Size != 3 || strings.Contains(info.URL, "secret") {
				t.Errorf("%s: %+v, %v", path, info, err)
			}
			continue
		}
		ok := err != nil && slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(err.Error(), w) })
		if !ok || stele.KindOf(err) != stele.Conflict {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestStatus: the error has the kind of the server's status.
func TestStatus(t *testing.T) {
	var asked atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
	})
	for status, want := range map[int]stele.Kind{
		401: stele.Unauthenticated, 403: stele.Forbidden, 404: stele.NotFound, 406: stele.NotFound, 410: stele.Gone, 451: stele.Forbidden, 429: stele.Unavailable,
		500: stele.Unavailable, 503: stele.Unavailable, 204: stele.Conflict, 206: stele.Conflict, 300: stele.Conflict, 304: stele.Conflict, 400: stele.Conflict, 416: stele.Unavailable,
	} {
		asked.Store(0)
		_, err := newFetcher(t, Options{Tries: 2}).File(t.Context(), Request{Location: url + "/" + strconv.Itoa(status)}, newPart(t))
		if err == nil || stele.KindOf(err) != want {
			t.Errorf("%d: %v of kind %v, want %v", status, err, stele.KindOf(err), want)
		}
		if again := asked.Load() == 2; again != (want == stele.Unavailable) {
			t.Errorf("%d was asked for %d times", status, asked.Load())
		}
	}
}

// TestLiars: a server that answers a request for the rest with something else does not
// spoil what is there.
func TestLiars(t *testing.T) {
	whole := "hello, world"
	for about, answer := range map[string]func(w http.ResponseWriter){
		"another beginning": func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 3-11/12")
			w.WriteHeader(206)
			_, _ = w.Write([]byte("lo, world"))
		},
		"another size": func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 5-12/13")
			w.WriteHeader(206)
			_, _ = w.Write([]byte(", world!"))
		},
		"another ETag": func(w http.ResponseWriter) {
			w.Header().Set("ETag", `"2"`)
			w.Header().Set("Content-Range", "bytes 5-11/12")
			w.WriteHeader(206)
			_, _ = w.Write([]byte(", WORLD"))
		},
		"several parts": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "multipart/byteranges; boundary=x")
			w.WriteHeader(206)
			_, _ = w.Write([]byte("--x"))
		},
		"nothing left": func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes */5")
			w.WriteHeader(416)
		},
		"only a piece": func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 5-7/12")
			w.WriteHeader(206)
			_, _ = w.Write([]byte(", w"))
		},
	} {
		t.Run(about, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") != "" {
					if r.Header.Get("Range") != "bytes=5-" || r.Header.Get("If-Range") != `"1"` {
						t.Errorf("asked with %v", r.Header)
					}
					answer(w)
					return
				}
				w.Header().Set("ETag", `"1"`)
				_, _ = w.Write([]byte(whole))
			})
			p := newPart(t)
			if err := p.begin(note{url, mark{ETag: `"1"`, Size: 12}}); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			info, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: url}, p)
			if err != nil || content(t, p) != whole || info.Resumed != 0 {
				t.Errorf("%q, %+v, %v", content(t, p), info, err)
			}
		})
	}
}

// TestStall: the client does not wait for a server that goes silent, at any moment.
func TestStall(t *testing.T) {
	over := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/later" {
			_, _ = w.Write([]byte("hello"))
			_ = http.NewResponseController(w).Flush()
		}
		<-over
	})
	t.Cleanup(func() { close(over) })
	for _, path := range []string{"/", "/later"} {
		_, err := newFetcher(t, Options{Idle: 50 * time.Millisecond, Tries: 1}).File(t.Context(), Request{Location: url + path}, newPart(t))
		if !errors.Is(err, errSilence) || stele.KindOf(err) != stele.Unavailable {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := newFetcher(t, Options{}).File(ctx, Request{Location: url}, newPart(t))
	if err == nil || stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "longer than it may") {
		t.Errorf("%v", err)
	}
	// A fetch that is interrupted keeps what is there.
	ctx, cancel = context.WithCancel(t.Context())
	p := newPart(t)
	_, err = newFetcher(t, Options{}).File(ctx, Request{Location: url + "/later", Progress: func(int64, int64) { cancel() }}, p)
	if err == nil || stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "it was interrupted") || content(t, p) != "hello" {
		t.Errorf("%v", err)
	}
}

// TestUntrusted: a server that fails authentication is not asked again.
func TestUntrusted(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(s.Close)
	s.Config.ErrorLog = nil
	_, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: s.URL}, newPart(t))
	if !errors.Is(err, ErrUntrusted) || stele.KindOf(err) != stele.Conflict || asked.Load() != 0 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
	f := newFetcher(t, Options{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	if info, err := f.File(t.Context(), Request{Location: s.URL}, newPart(t)); err != nil || info.InClear || info.Open {
		t.Errorf("%+v, %v", info, err)
	}
	// The certificate is for another name.
	other := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	if _, err := f.File(t.Context(), Request{Location: other}, newPart(t)); !errors.Is(err, ErrUntrusted) {
		t.Errorf("%v", err)
	}
}

// TestPacked: a body that the server compresses, against the request, is kept as it is sent,
// and reported.
func TestPacked(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("asked for %q", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte("\x1f\x8bhello"))
	})
	p := newPart(t)
	if info, err := newFetcher(t, Options{}).File(t.Context(), Request{Location: url}, p); err != nil || content(t, p) != "\x1f\x8bhello" || info.Encoding != "gzip" {
		t.Errorf("%q, %+v, %v", content(t, p), info, err)
	}
	for text, want := range map[string]string{"": "", "identity": "", "GZIP": "gzip", "deflate , br": "deflate, br", "identity, gzip,": "gzip", strings.Repeat("x", 200): strings.Repeat("x", 100)} {
		if got := encoding(http.Header{"Content-Encoding": {text}}); got != want {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

func TestFetches(t *testing.T) {
	for location, want := range map[string]bool{
		"http://h/": true, "HTTPS://h": true, "ftp://h/a": true, "rtsp://h/a": false, "file:///etc/passwd": false, "file://h/a": false, "javascript:x": false,
		"http:///a": false, "//h/a": false, "": false, "http://[": false, "ftps://h/a": false, "http://:80/": false,
	} {
		if got := Fetches(location); got != want {
			t.Errorf("%q: %v", location, got)
		}
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]string{
		"bytes 5-9/10": "5 9 10", "Bytes 0-0/1": "0 0 1", "bytes 5-9/*": "5 9 -1", "bytes 9-5/10": "", "bytes 5-10/10": "", "bytes */10": "", "items 5-9/10": "",
		"bytes=5-9/10": "", "bytes -5-9/10": "", "bytes 5-9": "", "": "", "bytes 99999999999999999999-9/10": "", "bytes +5-9/10": "",
	} {
		first, last, size, ok := parseRange(text)
		if got := fmt.Sprint(first, last, size); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v", text, got, ok)
		}
	}
}
