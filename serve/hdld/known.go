package hdld

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// known appends the answer to a request for values that the server has made before, and keeps. It is for plain requests, as most are: without
// session, encryption, signature or digest. It never waits. ok is false if the answer must be made; then nothing is
// appended.
func (s *Server) known(dst, request []byte, now time.Time) (answer []byte, ok bool) {
	start := len(dst)
	defer func() {
		if fault := recover(); fault != nil { // it ends one answer, and not the server
			s.o.Log.Error("a request of the Handle protocol broke off", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
			answer, ok = dst[:start], false
		}
	}()
	e, body, flags, ok := plain(request)
	if !ok {
		return dst, false
	}
	site := s.o.Site()
	dst = hdl.BeginMessage(dst,
		&hdl.Envelope{Version: e.AnswerVersion(), Suggested: hdl.Latest(), Request: e.Request},
		&hdl.Header{Operation: hdl.Resolve, Response: hdl.Success, Flags: answerFlags(flags, site), SiteSerial: site.Serial, Expiration: expirationAt(now)})
	// The body of the answer begins with the handle as it stands in the request (section 4).
	handle := 4 + int(binary.BigEndian.Uint32(body))
	dst = append(dst, body[:handle]...)
	if dst, ok = s.kept.find(dst, body, keptFlags(flags), s.o.Handles); !ok {
		return dst[:start], false
	}
	return hdl.EndMessage(dst, start), true
}

// plain reads the parts of a plain request that an answer needs, and reports whether it is one. What is not is read
// elsewhere, where it is said what is wrong with it.
func plain(request []byte) (e hdl.Envelope, body []byte, flags hdl.Flags, ok bool) {
	if len(request) < hdl.EnvelopeSize+hdl.HeaderSize+4 {
		return e, nil, 0, false
	}
	e, err := hdl.ParseEnvelope(request)
	if err != nil || int(e.Length) != len(request)-hdl.EnvelopeSize || e.Sequence != 0 || e.Session != 0 || e.Encrypted || e.Compressed {
		return e, nil, 0, false
	}
	head := request[hdl.EnvelopeSize:]
	if hdl.Operation(binary.BigEndian.Uint32(head)) != hdl.Resolve {
		return e, nil, 0, false
	}
	m, err := hdl.Parse(request)
	if err != nil || m.Header.Response != 0 || m.Credential != nil || m.Header.Flags&(hdl.Certify|hdl.ReturnDigest) != 0 ||
		len(m.Body) < 4 || uint64(binary.BigEndian.Uint32(m.Body)) > uint64(len(m.Body)-4) {
		return e, nil, 0, false
	}
	return e, m.Body, m.Header.Flags, true
}

// keep keeps the values that answer a request: only such that any client may read, found for the public.
func (s *Server) keep(q *call, found *handles.Found, values []byte) {
	if found.Restricted || found.Epoch == (handles.Epoch{}) {
		return
	}
	s.kept.put(q.m.Body, keptFlags(q.m.Header.Flags), values, found.Epoch)
}

func keptFlags(flags hdl.Flags) uint8 {
	if flags&hdl.PublicOnly != 0 {
		return flagPublic
	}
	return 0
}

// answerFlags returns the flags of an answer to a request with these.
func answerFlags(flags hdl.Flags, site *Site) hdl.Flags {
	flags = flags&copied | hdl.Recursive
	if site.Primary {
		flags |= hdl.Authoritative
	}
	return flags
}
