package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
)

// lingering is how long the server waits at its end for what a client still sends.
const lingering = time.Second

// refusing is how long a client may take to read why it was refused, however long the
// server has waited for it before.
const refusing = 30 * time.Second

// write writes an answer in one piece. It replaces an answer that would have the server hold
// too much for clients that do not read by a refusal, unless the answer reports something
// that was done.
func (c *call) write(status int, media string, body []byte) {
	c.endTurn()
	if c.r.Method != http.MethodHead {
		release, err := c.hold(int64(len(body)))
		if err != nil {
			c.fail(err)
			return
		}
		defer release()
	}
	c.began = true
	c.prepare(media)
	if status < http.StatusBadRequest {
		c.tellVersion()
	}
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		// If this fails the client is gone.
		_, _ = c.w.Write(body)
	}
}

// hold counts an answer of n bytes until the client has read it.
func (c *call) hold(n int64) (release func(), err error) {
	if !c.isRead() {
		return c.h.o.Held.Add(c.address(), n), nil
	}
	return c.h.o.Held.Take(c.address(), n)
}

// endTurn lets other requests make their answers: this one is made.
func (c *call) endTurn() {
	if c.made != nil {
		c.made()
	}
}

// prepare sets the headers that all answers have. Scripts of other sites may read what the
// public reads; an answer to a token is private.
func (c *call) prepare(media string) {
	head := c.w.Header()
	if media != "" {
		head.Set("Content-Type", media)
	}
	switch {
	case c.token:
		head["Cache-Control"] = privately
	case c.isRead():
		head["Access-Control-Allow-Origin"], head["Access-Control-Expose-Headers"] = anyOrigin, exposed
		if head["Cache-Control"] == nil {
			head["Cache-Control"] = askAgain
		}
	default:
		head["Cache-Control"] = notKept
	}
}

// replyJSON answers with a document.
func (c *call) replyJSON(status int, document []byte) error {
	c.write(status, apijson.JSON, append(document, '\n'))
	return nil
}

// reply answers with a value in JSON.
func (c *call) reply(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: err}
	}
	return c.replyJSON(status, text)
}

// replyEmpty answers with a status that has no body.
func (c *call) replyEmpty(status int) {
	c.began = true
	c.prepare("")
	c.tellVersion()
	c.w.WriteHeader(status)
}

// replyRecord answers with a record and its version.
func (c *call) replyRecord(status int, record *stele.Record) error {
	c.w.Header().Set("ETag", c.h.tagOf(record.Version))
	return c.replyJSON(status, document.AppendRecord(nil, record))
}

// stream is an answer that is written bit by bit.
type stream struct {
	c      *call
	rc     *http.ResponseController
	buffer []byte
}

// stream begins an answer with status 200. What is written to it is sent when
// [stream.flush] is called, when there is enough of it, and when the operation has
// ended. Sending gives the client more time.
func (c *call) stream(media string) *stream {
	c.endTurn()
	c.out = &stream{c: c, rc: http.NewResponseController(c.w)}
	// HTTP/1 stops reading when an answer begins, unless this enables it; later versions need
	// no call.
	_ = c.out.rc.EnableFullDuplex()
	c.began = true
	c.prepare(media)
	c.promiseVersion()
	c.w.WriteHeader(http.StatusOK)
	return c.out
}

// Write implements [io.Writer].
func (s *stream) Write(b []byte) (int, error) {
	s.buffer = append(s.buffer, b...)
	if len(s.buffer) < 32<<10 {
		return len(b), nil
	}
	return len(b), s.send()
}

// line writes a value as a line of JSON.
func (s *stream) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = s.Write(append(text, '\n'))
	return err
}

// send passes on what is in the buffer.
func (s *stream) send() error {
	defer func() { s.buffer = s.buffer[:0] }()
	if len(s.buffer) == 0 || s.c.r.Method == http.MethodHead {
		return nil
	}
	s.c.extend(0)
	if _, err := s.c.w.Write(s.buffer); err != nil {
		return &stele.Error{Op: s.c.op.name, Kind: stele.Unavailable, Err: err}
	}
	return nil
}

// flush sends all that was written.
func (s *stream) flush() error {
	if err := s.send(); err != nil {
		return err
	}
	_ = s.rc.Flush() // a writer that can't do so has sent it already
	return nil
}

// abort ends an answer that has begun, so that the client sees that it is not whole:
// with a deadline that has passed the end of the body can't be written.
func (c *call) abort() {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Unix(1, 0))
}
