package usage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// logMark says how much of a log file is counted. Its cell is named after the first line of the file, which has a time and an address, so that
// a file is known by it however it is named and compressed, and however much was added to it since.
type logMark struct {
	Base int64  `json:"base"` // bytes whose lines are counted
	Sum  string `json:"sum"`  // SHA-256 of these

	// Of a run that did not end yet:
	Goal    int64  `json:"goal,omitempty"`    // bytes that it counts
	GoalSum string `json:"goalSum,omitempty"` // SHA-256 of these
	Options string `json:"options,omitempty"` // how it counts
	Flushes int    `json:"flushes,omitempty"` // parts whose figures are written
	Last    []byte `json:"last,omitempty"`    // of the next part, the name of the last cell that is written
}

const logCells = registrar.UsageCells + "i"

func (m logMark) bytes() []byte {
	text, _ := json.Marshal(m) // it has nothing that can't be written
	return text
}

// logFile is what is known of a file before it is counted.
type logFile struct {
	cell string // with its mark
	mark logMark
	have []byte // value of the cell
	end  int64  // of the last line that has an end
	sum  string // SHA-256 of all up to there
	rest bool   // something follows that has no end
}

// lookAt reads a file once, to find out whether it was counted before.
func lookAt(ctx context.Context, store Store, name string, in io.Reader) (*logFile, error) {
	f := new(logFile)
	head := make([]byte, maxLogLine)
	n, err := fill(in, head)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	first := head
	if at := bytes.IndexByte(head, '\n'); at >= 0 {
		first = head[:at]
	}
	id := sha256.Sum256(first)
	f.cell = logCells + hex.EncodeToString(id[:])
	if f.have, err = store.UsageCell(ctx, f.cell); err != nil {
		return nil, err
	}
	if f.have != nil {
		if err := json.Unmarshal(f.have, &f.mark); err != nil {
			return nil, errDamaged()
		}
	}
	found, err := f.digest(ctx, io.MultiReader(bytes.NewReader(head), in))
	if err != nil {
		return nil, err
	}
	if f.mark.Base > 0 && found[f.mark.Base] != f.mark.Sum || f.mark.Goal > 0 && found[f.mark.Goal] != f.mark.GoalSum {
		return nil, refuse(stele.Conflict, "usage.log-differs", "{file} begins with the same line as a log file that was counted, but is not that file with more lines; none of it is counted", name)
	}
	return f, nil
}

// digest reads all of a file. It returns the digests of its beginnings up to what is marked.
func (f *logFile) digest(ctx context.Context, in io.Reader) (found map[int64]string, err error) {
	sum, at := sha256.New(), int64(0)
	found = make(map[int64]string)
	buffer := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := fill(in, buffer)
		text := buffer[:n]
		if last := bytes.LastIndexByte(text, '\n'); last >= 0 {
			f.end = at + int64(last) + 1
		}
		for len(text) > 0 {
			step := int64(len(text))
			for _, stop := range []int64{f.mark.Base, f.mark.Goal, f.end} {
				if stop > at && stop-at < step {
					step = stop - at
				}
			}
			_, _ = sum.Write(text[:step]) // a hash never fails
			text, at = text[step:], at+step
			if at == f.mark.Base || at == f.mark.Goal {
				found[at] = digestOf(sum)
			}
			if at == f.end {
				f.sum = digestOf(sum)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			f.rest = at > f.end
			return found, nil
		case err != nil:
			return nil, err
		}
	}
}

// fill reads until the buffer is full. It is [io.ReadFull] with io.EOF at the end, which is not the error of a compressed file that was cut off.
func fill(in io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = in.Read(buffer[n:])
		n += more
	}
	return n, err
}

func digestOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }
