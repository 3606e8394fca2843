package ftp

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// maxFolders is how many folders a path may have.
const maxFolders = 64

// Path is where a file is: folders, one in the other, and a name.
type Path struct {
	folders []string
	name    string
}

// ParsePath reads the path of a URL (RFC 1738, section 3.2.2), where %2F is a slash in a
// name of the server's. What a terminal or the protocol would act on is refused.
func ParsePath(u *url.URL) (Path, error) {
	var p Path
	words := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	last := len(words) - 1
	if name, kind, ok := strings.Cut(words[last], ";type="); ok {
		if strings.EqualFold(kind, "d") {
			return Path{}, stele.Messagef("ftp.path-is-listing", "it is a list of files, and no file")
		}
		words[last] = name
	}
	for i, word := range words {
		text, err := url.PathUnescape(word)
		if err != nil || !isName(text) {
			return Path{}, stele.Messagef("ftp.path-characters-invalid", "the path has characters that no file's name has")
		}
		switch {
		case i == last:
			p.name = text
		case text != "":
			p.folders = append(p.folders, text)
		}
	}
	switch {
	case p.name == "":
		return Path{}, stele.Messagef("ftp.path-is-folder", "it is a folder, and no file")
	case len(p.folders) > maxFolders:
		return Path{}, stele.Messagef("ftp.path-too-deep", "the path has more than {limit} folders", maxFolders)
	}
	return p, nil
}

// isName reports whether a text can be sent as a name. Its encoding is the server's
// business, except for the byte with which Telnet's commands begin, on which FTP is built.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f || c == 0xff {
			return false
		}
	}
	return true
}

// File is a file on a server.
type File struct {
	conn *Conn
	name string
	Size int64     // -1 if the server does not tell
	Time time.Time // when it was changed; zero if the server does not tell
}

// File goes to the folder of a file, and asks for its size and time. That there is no such
// file may be known only when it is read.
func (c *Conn) File(p Path) (*File, error) {
	for _, folder := range p.folders {
		r, err := c.send("CWD " + folder)
		if err != nil {
			return nil, err
		}
		if r.Code/100 != 2 {
			return nil, c.refused("its folder", r)
		}
	}
	f := &File{conn: c, name: p.name, Size: -1}
	r, err := c.send("SIZE " + p.name)
	if err != nil {
		return nil, err
	}
	if n, ok := parseSize(r.Text); ok && r.Code == 213 {
		f.Size = n
	}
	if r, err = c.send("MDTM " + p.name); err != nil {
		return nil, err
	}
	if t, ok := parseTime(r.Text); ok && r.Code == 213 {
		f.Time = t
	}
	return f, nil
}

// ErrNoRest says that a server sends files from the beginning only.
var ErrNoRest = stele.Messagef("ftp.resume-unsupported", "the server sends files from the beginning only")

// Open begins to read the file, from a byte on. It may be called once; the reader must be
// closed. An error that has ErrNoRest in it leaves the session as it was.
func (f *File) Open(from int64) (io.ReadCloser, error) {
	c := f.conn
	data, err := c.passive()
	if err != nil {
		return nil, err
	}
	if from > 0 {
		r, err := c.send("REST " + strconv.FormatInt(from, 10))
		if err == nil && r.Code != 350 {
			err = &stele.Error{Op: "ask by FTP", Kind: stele.Unavailable, Err: ErrNoRest}
		}
		if err != nil {
			_ = data.Close()
			return nil, err
		}
	}
	r, err := c.send("RETR " + f.name)
	if err == nil && r.Code != 150 && r.Code != 125 {
		err = c.refused("the file", r)
	}
	if err != nil {
		_ = data.Close()
		return nil, err
	}
	return &transfer{conn: c, data: data}, nil
}

// transfer is a file on its way.
type transfer struct {
	conn *Conn
	data net.Conn
	done error // what the end was
}

// Read reads. The end is one only if the server says that this was all: a connection that
// breaks looks the same (RFC 959, section 3.4, stream mode).
func (t *transfer) Read(b []byte) (int, error) {
	if t.done != nil {
		return 0, t.done
	}
	n, err := t.data.Read(b)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		t.done = t.conn.unavailable(err)
		return n, t.done
	}
	_ = t.data.Close()
	r, err := t.conn.reply()
	switch {
	case err != nil:
		t.done = err
	case r.Code != 226 && r.Code != 250:
		t.done = &stele.Error{Op: "ask by FTP", Kind: stele.Unavailable, Err: stele.Messagef("ftp.broken-off", "the server broke off: {reply}", r)}
	default:
		t.done = io.EOF
	}
	return n, t.done
}

// Close ends the transfer; the session is of no use for another one unless all was read.
func (t *transfer) Close() error { return t.data.Close() }
