package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// readAgain reads the records of a bundle that Read has checked, and calls each with all versions of a file, in their order. A file has to have
// the digest that Read has found, so that nothing else has to be checked again: Conflict if the archive was replaced meanwhile.
func readAgain(ctx context.Context, in io.Reader, schemes *stele.Schemes, report *Report, each func([]*stele.Record) error) error {
	plain, err := decompress(in)
	if err != nil {
		return err
	}
	archive := tarReader{in: plain}
	var text []byte
	for _, f := range report.payload {
		name, size := "", int64(0)
		for name != f.name { // files that are not of the payload stand between them
			if err := ctx.Err(); err != nil {
				return err
			}
			if name, size, err = archive.next(); err != nil {
				return err
			}
			if name == "" {
				return errReplaced
			}
		}
		if !strings.HasPrefix(name, "data/records-") {
			continue
		}
		if size > maxFileBytes+maxLine {
			return errReplaced
		}
		text = slices.Grow(text[:0], int(size))[:size]
		if _, err := io.ReadFull(&archive, text); err != nil {
			return err
		}
		if sha256.Sum256(text) != f.sum {
			return errReplaced
		}
		list, err := parseAll(schemes, text)
		if err != nil {
			return err
		}
		if err := each(list); err != nil {
			return err
		}
	}
	return nil
}

// parseAll reads the records of a file that was checked before. Lines do not depend on each other, so all processors help.
func parseAll(schemes *stele.Schemes, text []byte) ([]*stele.Record, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines = lines[:len(lines)-1] // the last one is empty
	list, errs := make([]*stele.Record, len(lines)), make([]error, len(lines))
	var wg sync.WaitGroup
	share(&wg, len(lines), func() func(int) {
		return func(i int) {
			if doc, _, _, ok := cutRecordLine(lines[i]); ok {
				list[i], errs[i] = document.DecodeStored(schemes, doc)
			} else {
				errs[i] = errReplaced
			}
		}
	})
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
