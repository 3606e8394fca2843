package fetch

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/ftp"
)

const ftpPort = "21"

// askFTP asks an FTP server. A file is still the same if it has the same size and time.
func (f *Fetcher) askFTP(ctx context.Context, u *url.URL, from int64, m *mark) (*offer, error) {
	path, err := ftp.ParsePath(u)
	if err != nil {
		return nil, about(u, fail(stele.Invalid, "", "{cause}", err))
	}
	conn, err := ftp.Open(ctx, u.Hostname(), cmp.Or(u.Port(), ftpPort), ftp.Options{Dial: f.o.Dial, Idle: f.o.Idle})
	if err != nil {
		return nil, about(u, err)
	}
	o, err := openFTP(conn, path, from, m)
	if err != nil {
		conn.Close()
		if errors.Is(err, ftp.ErrNoRest) {
			return nil, errChanged
		}
		return nil, about(u, err)
	}
	return o, nil
}

func openFTP(conn *ftp.Conn, path ftp.Path, from int64, m *mark) (*offer, error) {
	file, err := conn.File(path)
	if err != nil {
		return nil, err
	}
	o := &offer{size: file.Size, mark: mark{Size: file.Size, Time: file.Time}}
	if from > 0 && m.isStrong() && m.Size == file.Size && m.Time.Equal(file.Time) && from <= file.Size {
		o.from = from
	}
	if o.from > 0 && o.from == file.Size {
		conn.Close()
		return o, nil
	}
	data, err := file.Open(o.from)
	if err != nil {
		return nil, err
	}
	o.body = session{data, conn}
	return o, nil
}

// session is a transfer with its session.
type session struct {
	body
	conn *ftp.Conn
}

// Close ends both.
func (s session) Close() error {
	err := s.body.Close()
	s.conn.Close()
	return err
}
