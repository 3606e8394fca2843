package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profileFor is for how long our server is profiled. The load lasts longer than that.
const profileFor = 18 * time.Second

// profileRedirects writes a profile of our server, as it redirects, to the file that the
// compiler reads when it builds the program (go help build, -pgo).
func (r *registryBench) profileRedirects(ctx context.Context, core int, l *load) error {
	return r.takeProfile(ctx, func(metrics string) (*server, func() error, error) {
		s, _, err := r.startStele(ctx, core, "--metrics", metrics)
		if err != nil {
			return nil, nil, err
		}
		again := func() error { _, err := l.run(ctx, s); return err }
		s.settle(ctx)
		return s, again, again() // all names are in the cache then
	})
}

// profileAnswers writes one of our server as it answers questions of the DNS: those that no client asked before, and then the same ones
// again.
func (d *dnsBench) profileAnswers(ctx context.Context, core int, l *dnsLoad) error {
	return d.takeProfile(ctx, func(metrics string) (*server, func() error, error) {
		s, _, err := d.startOurs(ctx, core, "--metrics", metrics)
		if err != nil {
			return nil, nil, err
		}
		s.settle(ctx)
		return s.server, func() error { _, err := l.run(ctx, s, 1, profileFor); return err }, nil
	})
}

// takeProfile writes a profile of a server that has its metrics at an address, while it has a load again and again.
func (r *registryBench) takeProfile(ctx context.Context, start func(metrics string) (s *server, load func() error, err error)) (err error) {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	s, load, err := start(address)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return err
	}
	progress("watching what the server does")
	var profile []byte
	watched := make(chan error, 1)
	go func() {
		var err error
		profile, err = fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", address, profileFor.Seconds()))
		watched <- err
	}()
	for begin := time.Now(); err == nil && time.Since(begin) < profileFor; {
		err = load()
	}
	if err = errors.Join(err, <-watched); err != nil {
		return err
	}
	if profile, err = withoutPlaces(profile); err != nil {
		return fmt.Errorf("the profile: %w", err)
	}
	return os.WriteFile(r.profile, profile, 0o644)
}

// fetch returns what stands at a URL.
func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return body, err
}

// stringTable begins the fields of a profile that have a text each: their number, 6
// (profile.proto of github.com/google/pprof), and their kind.
const stringTable = 6<<3 | 2

// withoutPlaces returns a profile without the names of folders on this machine, which
// the compiler does not need. A profile is a compressed message of protocol buffers.
func withoutPlaces(profile []byte) ([]byte, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(profile))
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(unzip)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	for len(rest) > 0 {
		field, text, next, err := cutField(rest)
		if err != nil {
			return nil, err
		}
		if field[0] == stringTable && filepath.IsAbs(string(text)) {
			field = []byte{stringTable, 0}
		}
		if _, err := zip.Write(field); err != nil {
			return nil, err
		}
		rest = next
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// cutField cuts a field from the beginning of a message: all of it, and its content if
// that is of any length.
func cutField(message []byte) (field, content, rest []byte, err error) {
	errShort := errors.New("a field of the message is cut off")
	key, n := binary.Uvarint(message)
	value, m := binary.Uvarint(message[max(n, 0):])
	if n <= 0 || m <= 0 {
		return nil, nil, nil, errShort
	}
	end := n + m
	switch key & 7 {
	case 0: // a number
	case 2:
		if value > uint64(len(message)-end) {
			return nil, nil, nil, errShort
		}
		content = message[end : end+int(value)]
		end += int(value)
	default:
		return nil, nil, nil, fmt.Errorf("a field of the message is of kind %d, which none should be", key&7)
	}
	return message[:end], content, message[end:], nil
}
