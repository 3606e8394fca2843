package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// mayHaveBody reports whether the request has a body that may not have been read to its end.
func (c *call) mayHaveBody() bool {
	return c.r.ContentLength != 0 || len(c.r.TransferEncoding) > 0
}

// checkBody makes sure that the body is one that the operation reads, before any of it is
// read. An operation without a body refuses one, since servers along the way may disagree
// about where it ends (RFC 9110, section 9.3.1; RFC 9112, section 11.2).
func (c *call) checkBody() error {
	b := c.op.body
	switch has := c.mayHaveBody(); {
	case b == nil && has:
		return invalidf("request.body-unexpected", "the request has a body, and here nothing is done with one; send it without")
	case b == nil, !has && b.optional:
		return nil
	case !has:
		return invalidf("request.body-missing", "the request has no body; send one of the type {media-type}", b.media[0])
	case b.limit > 0 && c.r.ContentLength > b.limit:
		return c.tooLarge()
	}
	return c.checkMedia(b)
}

// checkMedia makes sure that the body has a form that is read.
func (c *call) checkMedia(b *body) error {
	if coding := strings.Join(c.r.Header.Values("Content-Encoding"), ", "); coding != "" && coding != "identity" {
		return refusef(http.StatusUnsupportedMediaType, "request.body-encoded", `the body is encoded as "{encoding}"; send it as it is`, coding)
	}
	given := c.r.Header.Values("Content-Type")
	if len(given) != 1 {
		return refusef(http.StatusUnsupportedMediaType, "request.content-type-missing", "the request should say once of what type its body is; send the header Content-Type: {media-type}", b.media[0])
	}
	media, params, err := mime.ParseMediaType(given[0])
	if err != nil || !slices.Contains(b.media, media) {
		return refusef(http.StatusUnsupportedMediaType, "request.media-type-unsupported", `a body of the type "{given}" is not read here; send {accepted}, with its Content-Type`, given[0], strings.Join(b.media, " or "))
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return refusef(http.StatusUnsupportedMediaType, "request.charset-unsupported", `the charset "{charset}" is not read here; send UTF-8`, charset)
	}
	c.media = media
	return nil
}

func (c *call) tooLarge() error {
	return refusef(http.StatusRequestEntityTooLarge, "request.body-too-large", "the body has more than {limit} bytes, which are the most here; send less at once", c.op.body.limit)
}

// bytes reads the body, within its limit and in the time that there is. It returns nothing if
// the request has no body.
func (c *call) bytes() ([]byte, error) {
	if c.media == "" {
		return nil, nil
	}
	c.extend(c.h.o.Reading - c.h.o.Patience)
	data, err := io.ReadAll(io.LimitReader(c.r.Body, c.op.body.limit+1))
	switch {
	case int64(len(data)) > c.op.body.limit:
		return nil, c.tooLarge()
	case err != nil:
		return nil, cut(err)
	}
	c.drained = true
	return data, nil
}

// cut says that a body could not be read to its end.
func cut(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refusef(http.StatusRequestTimeout, "request.body-too-slow", "the body did not arrive in time; send it again")
	}
	return invalidf("request.body-cut-off", "the body ends before its end; send it again")
}

// decode reads the body, one document in JSON, into v. See [document.DecodeStrictly].
func (c *call) decode(v any) error {
	data, err := c.bytes()
	if err != nil {
		return err
	}
	return document.DecodeStrictly(c.op.name, data, v)
}

// hurry makes sure that the server does not wait for the rest of a body that it does not
// need. With HTTP/1 the connection can't be used again then.
func (c *call) hurry() {
	if c.r.ProtoMajor < 2 {
		c.w.Header()["Connection"] = closing
	}
	now, rc := c.h.o.Now(), http.NewResponseController(c.w)
	_ = rc.SetReadDeadline(now.Add(lingering))
	_ = rc.SetWriteDeadline(now.Add(refusing))
}

// record reads a record in the body: strictly, and with the identifier in the path if
// it has none of its own.
func (c *call) record(id stele.ID) (*stele.Record, error) {
	data, err := c.bytes()
	if err != nil {
		return nil, err
	}
	return document.DecodeRecord(c.h.o.Schemes, document.WithMember(data, "id", id.String()))
}

// readPatch reads a merge patch in the body.
func (c *call) readPatch() (any, error) {
	data, err := c.bytes()
	if err != nil {
		return nil, err
	}
	return document.ReadPatch(c.op.name, data)
}
