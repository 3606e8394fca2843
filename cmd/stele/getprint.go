package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/fetch"
)

// gotDocument is what was got, as programs see it. There is no file if others must fetch
// it.
type gotDocument struct {
	ID       stele.ID      `json:"id"`
	File     string        `json:"file,omitempty"`
	Location string        `json:"location"`
	URL      string        `json:"url,omitempty"` // where redirects from there led
	Type     string        `json:"type,omitempty"`
	Encoding string        `json:"encoding,omitempty"` // how the server has packed it, and it still is
	Size     int64         `json:"size"`
	SHA256   string        `json:"sha256,omitempty"`
	Resumed  int64         `json:"resumed,omitempty"` // bytes that were there already
	InClear  bool          `json:"inClear,omitempty"` // others on the way could have changed it
	Open     bool          `json:"open,omitempty"`    // nobody said how long it is
	Via      client.Via    `json:"via"`
	DNSSEC   dnssec.Status `json:"dnssec,omitempty"` // of the location
	Verified bool          `json:"verified"`         // by a key that somebody vouches for
	Proof    *client.Proof `json:"proof,omitempty"`
}

func newGot(location string, info *fetch.Info) gotDocument {
	d := gotDocument{Location: location, Type: info.Type, Encoding: info.Encoding, Size: info.Size, Resumed: info.Resumed, InClear: info.InClear, Open: info.Open}
	if info.URL != location {
		d.URL = info.URL
	}
	return d
}

// tell says what was got, and in a line what was proven of it.
func (g *getting) tell(w io.Writer, d gotDocument) error {
	if d.Encoding != "" {
		fmt.Fprintf(g.stderr, "stele: the server has packed it (Content-Encoding: %s), though it was asked not to; it is kept as it was sent, so unpack it before you use it\n", printable(d.Encoding))
	}
	d.Verified = d.Proof != nil && d.Proof.IsProven()
	if g.json {
		if w == g.stdout {
			return g.printObject(d)
		}
		return nil // standard output has the thing itself
	}
	name := d.File
	if name == toStandardOutput {
		name = "standard output"
	}
	line := fmt.Sprintf("%s: %s bytes from %s", printable(name), grouped(d.Size), printable(d.Location))
	if d.Resumed > 0 {
		line += fmt.Sprintf(", of which %s were there already", grouped(d.Resumed))
	}
	switch {
	case d.Proof != nil:
		line += "\n" + d.Proof.String()
	case d.Open:
		line += "; nothing was verified, not even that this is all of it: the server did not say how long it is"
	default:
		line += "; nothing was verified"
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// bar shows how far it is, on a terminal only.
type bar struct {
	*program
	progress *progress
	done     atomic.Int64
	total    int64
}

// move tells how many bytes are there, of how many.
func (b *bar) move(done, total int64) {
	if f, ok := b.stderr.(*os.File); !ok || !isTerminal(f) {
		return
	}
	before := b.done.Swap(done)
	if b.progress == nil || total != b.total || done < before {
		b.end()
		b.total, before = total, done
		b.progress = b.newProgress("get", "bytes", max(total, 0), b.done.Load)
	}
	b.progress.Add(int(done - before))
}

// end takes the bar away. It may be called twice.
func (b *bar) end() {
	if b.progress != nil {
		b.progress.End()
		b.progress = nil
	}
}
