package demo

import (
	"bytes"
	"encoding/binary"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"
)

// site is the web site of the publishers whose things the demo names: where redirects lead,
// so that a click works without any network. It answers every path, by how it ends.
type site struct {
	resolver string // the address of the resolver
	begun    time.Time
}

func (d site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, body := d.content(r)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", d.begun, bytes.NewReader(body))
}

// content returns what is at a path.
func (d site) content(r *http.Request) (mediaType string, body []byte) {
	switch path.Ext(r.URL.Path) {
	case ".wav":
		return "audio/wav", tone()
	case ".mp3":
		return "audio/mpeg", silence()
	case ".json":
		return "application/json", []byte(`{"title":"Songs of the reef, side A","collector":"Bowden, A.","recorded":"1968","format":"open reel tape"}` + "\n")
	case ".sig":
		return "text/plain; charset=utf-8", []byte("The recording was compared with its tape on 1 March 2012. A. Bowden\n")
	case ".pdf":
		return "application/pdf", []byte(pdf)
	}
	var b bytes.Buffer
	// The template is a constant, and a buffer takes everything.
	_ = page.Execute(&b, map[string]string{
		"Path": r.URL.Path, "Query": r.URL.RawQuery, "Resolver": d.resolver,
		"Sound": strings.TrimSuffix(soundOf(r.URL.Path), "/"),
	})
	return "text/html; charset=utf-8", b.Bytes()
}

// soundOf returns the address of the recording that a page is about, or "".
func soundOf(path string) string {
	if strings.HasPrefix(path, "/paradisec/AB1/001/") {
		return path + ".wav"
	}
	return ""
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Path}}</title>
<style>body{font:1.1rem/1.6 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;color:#222;background:#fbfaf7}code{background:#eee;padding:.1em .3em}</style>
<h1>You have arrived.</h1>
<p>This is the publisher's own site, at the path <code>{{.Path}}</code>{{with .Query}} with the query <code>{{.}}</code>{{end}}.
A name led you here, and will do so when this page has moved.</p>
{{with .Sound}}<p><audio controls src="{{.}}"></audio></p>{{end}}
<p><a href="{{.Resolver}}/">Back to the resolver</a></p>
</html>
`))

// pdf is a page without anything on it.
const pdf = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
	"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"

// tone returns a second of sound: 8000 samples of 16 bits, a triangle of 440 Hz
// that dies away.
func tone() []byte {
	const rate, pitch = 8000, 440
	samples := make([]int16, rate)
	for i := range samples {
		phase := i * pitch * 4 % (rate * 4) // a period is 4*rate
		height := phase
		switch {
		case phase >= 3*rate:
			height = phase - 4*rate
		case phase >= rate:
			height = 2*rate - phase
		}
		samples[i] = int16(height * 2 * (rate - i) / rate * 3 / 4)
	}
	var b bytes.Buffer
	size := uint32(2 * len(samples))
	for _, part := range []any{
		[]byte("RIFF"), 36 + size, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1),
		uint32(rate), uint32(2 * rate), uint16(2), uint16(16), []byte("data"), size, samples,
	} {
		// All parts have a fixed size, and a buffer takes everything.
		_ = binary.Write(&b, binary.LittleEndian, part)
	}
	return b.Bytes()
}

// silence returns a second of silence in MP3: 38 frames of MPEG-1 layer III, at
// 128 kbit/s and 44.1 kHz, with nothing in them.
func silence() []byte {
	frame := make([]byte, 417)
	copy(frame, []byte{0xff, 0xfb, 0x90, 0xc4})
	return bytes.Repeat(frame, 38)
}
