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
		if answer.Failure = v.failure(ctx, u.Hostname(), err); stele.KindOf(err) == stele.Unauthenticated {
			answer.Failure = links.FailNoLogin
		}
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
		if answer.Failure = v.failure(ctx, u.Hostname(), err); stele.KindOf(err) == stele.NotFound {
			answer.Failure = links.FailNoFile
		}
		return answer
	}
	answer.Status, answer.Length = 226, max(answer.Length, file.Size)
	return answer
}
