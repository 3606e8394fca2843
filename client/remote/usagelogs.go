package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// pieceBytes is how much of a log file is sent at once.
const pieceBytes = 1 << 20

// CountLog sends a log file of another server in pieces, and has the server count it. A piece that gets lost is sent again. Sent is called with bytes that the server has, and counted with
// lines that it has read.
func (r *Registry) CountLog(ctx context.Context, in io.Reader, o apijson.UsageLogOptions, sent, counted func(int)) (*apijson.UsageLogSummary, error) {
	const op = "count log"
	var log apijson.UsageLog
	if err := r.fetch(ctx, op, &ask{method: http.MethodPost, path: "usagelogs"}, &log); err != nil {
		return nil, err
	}
	path := pathOf("usagelogs", log.ID)
	began := false
	defer func() {
		if began {
			return // the server forgets the file when it has counted it
		}
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = r.call(soon, &ask{method: http.MethodDelete, path: path}) // or else it stays for an hour
	}()
	piece := make([]byte, pieceBytes)
	for {
		n, readErr := io.ReadFull(in, piece)
		if n > 0 {
			q := &ask{method: http.MethodPut, path: path, query: url.Values{"at": {strconv.FormatInt(o.Size, 10)}}, media: "application/octet-stream", body: piece[:n], again: true}
			if err := r.fetch(ctx, op, q, nil); err != nil {
				return nil, err
			}
			o.Size += int64(n)
			sent(n)
		}
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			break
		}
		if readErr != nil {
			return nil, readErr
		}
	}
	s, err := r.open(ctx, &ask{method: http.MethodPost, path: path, document: &o}, nil, streamStill)
	if err != nil {
		return nil, under(op, stele.ID{}, err)
	}
	defer s.Close()
	began = true
	for text, err := range textLines(s) {
		if err != nil {
			return nil, err
		}
		var line apijson.UsageLogCounted
		switch err := json.Unmarshal(text, &line); {
		case err != nil:
			return nil, unread(err)
		case line.Problem != nil:
			return nil, under(op, stele.ID{}, r.problem(line.Problem, line.Problem.Status))
		case line.Done && line.Summary != nil:
			return line.Summary, nil
		}
		counted(line.Lines)
	}
	return nil, refuse(op, stele.ID{}, stele.Unavailable, "usage.log-answer-cut-off", "the answer was cut off; give the same command again: what is counted does not count twice")
}
