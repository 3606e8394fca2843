package terminal

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/stele-id/stele"
)

// Lines calls one for each line of in, which is standard input, with the line, without the blanks around it, and its
// whole size. It cuts a line that is longer than most, and never holds more than that and a few bytes of
// it, whatever its size. It skips empty lines and those that begin with #. Before it waits
// for more input it calls idle: the process that writes may be waiting for the answer.
func Lines(in io.Reader, most int, one func(text string, size int) error, idle func() error) error {
	lines := bufio.NewReaderSize(in, most+16)
	for {
		skipBlanks(lines)
		line, err := lines.ReadSlice('\n')
		text := string(line)
		read, size := len(line), visible(line) // the size is without what is blank at the end
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = lines.ReadSlice('\n')
			if n := visible(line); n > 0 {
				size = read + n
			}
			read += len(line)
		}
		text = text[:min(size, len(text))]
		if text != "" && text[0] != '#' {
			if err := one(text, size); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return stele.Messagef("standard-input.failed", "standard input: {cause}", err)
		case lines.Buffered() == 0:
			if err := idle(); err != nil {
				return err
			}
		}
	}
}

// visible returns how long a piece of a line is without the blanks at its end.
func visible(line []byte) int { return len(bytes.TrimRight(line, " \t\r\n")) }

// skipBlanks skips spaces and tabs: they do not count for a line's size.
func skipBlanks(in *bufio.Reader) {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return
		}
		if c != ' ' && c != '\t' {
			_ = in.UnreadByte() // can't fail after ReadByte
			return
		}
	}
}
