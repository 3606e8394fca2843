package ask

import (
	"context"
	"io"
	"net/url"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/ftp"
	"github.com/stele-id/stele/links"
)

// ftp asks whether a file is there, and reads it if its digest is needed.
func (v *visit) ftp(ctx context.Context, u *url.URL, k Known) *links.Answer {
	answer := &links.Answer{URL: u.String(), Final: u.String(), Length: -1}
	path, err := ftp.ParsePath(u)
	if err != nil || v.isOwn(u) {
		answer.Failure = links.FailNotAskable
		return answer
	}
	ctx, cancel := context.WithTimeout(ctx, v.o.Timeout)
	defer cancel()
	began := v.o.Now()
	defer func() { v.took = v.o.Now().Sub(began) }()
	port := u.Port()
	if port == "" {
		port = "21"
	}
	conn, err := ftp.Open(ctx, u.Hostname(), port, ftp.Options{Dial: v.dialer.DialContext, Idle: min(heading, v.o.Timeout)})
	if err != nil {
		v.refused(ctx, u, err, answer)
		return answer
	}
	defer conn.Close()
	file, err := conn.File(path)
	answer.Cut = true                                                      // until it is read
	if err == nil && (file.Size < 0 || k.Whole && file.Size <= maxWhole) { // a server that does not know sizes
		var body io.ReadCloser
		if body, err = file.Open(0); err == nil {
			if k.Whole {
				read(body, true, answer)
			}
			_ = body.Close()
		}
	}
	if err != nil {
		v.refused(ctx, u, err, answer)
		return answer
	}
	answer.Status, answer.Length = 226, max(answer.Length, file.Size)
	return answer
}

// refused says in an answer why there is no file. A server that says no is there: for now it has no room (RFC 959, section 4.2.1: 4xx), or it does not give
// the file.
func (v *visit) refused(ctx context.Context, u *url.URL, err error, answer *links.Answer) {
	reply, said := ftp.Refused(err)
	switch kind := stele.KindOf(err); {
	case said && kind == stele.Unauthenticated:
		answer.Failure = links.FailNoLogin
	case said && kind == stele.NotFound:
		answer.Failure = links.FailNoFile
	case said && reply.Code >= 500:
	case said:
		answer.Failure = links.FailBusy
	default:
		answer.Failure = v.failure(ctx, u.Hostname(), err)
		return
	}
	answer.Status = reply.Code
}
