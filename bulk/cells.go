package bulk

import (
	"bytes"
	"iter"
	"math"
	"strings"

	"github.com/stele-id/stele"
)

// IsSkipped reports whether a line is skipped: it is empty or a remark. A file of
// rejected lines has a remark before each of them.
func IsSkipped(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// RowEnd returns the end of the first row of a text, after its line's end; 0 if the
// text ends before the row does. A remark is a row by itself.
func RowEnd(text []byte, delimiter byte) int {
	line := bytes.IndexByte(text, '\n')
	if line < 0 {
		return 0
	}
	if bytes.IndexByte(text[:line], '"') < 0 || IsSkipped(text[:line]) {
		return line + 1
	}
	for i := 0; i < len(text); i++ { // at the beginning of a cell
		if text[i] == '"' {
			n := quotedEnd(text[i:])
			if n == 0 {
				return 0
			}
			i += n
		}
		for ; i < len(text) && text[i] != delimiter; i++ {
			if text[i] == '\n' {
				return i + 1
			}
		}
	}
	return 0
}

// quotedEnd returns the end of a cell in quotation marks, after the closing one; 0 if
// there is none. Two marks inside the cell stand for one.
func quotedEnd(text []byte) int {
	for i := 1; ; i += 2 {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return 0
		}
		if i += n; i+1 >= len(text) || text[i+1] != '"' {
			return i + 1
		}
	}
}

// SplitRow appends the cells of a row to cells. They share one copy of the row.
func SplitRow(row []byte, delimiter byte, cells []string) ([]string, error) {
	return SplitAtMost(row, delimiter, cells, math.MaxInt)
}

// SplitAtMost is as [SplitRow], and refuses a row with more than so many cells without reading them all.
func SplitAtMost(row []byte, delimiter byte, cells []string, most int) ([]string, error) {
	for text := string(row); ; {
		if len(cells) == most {
			return cells, stele.Messagef("row.too-many-cells", "the row has more than {most} cells, which are the most", most)
		}
		end, err := cellEnd(row, delimiter, len(cells))
		if err != nil {
			return cells, err
		}
		if end > 0 && row[0] == '"' {
			cells = append(cells, strings.ReplaceAll(text[1:end-1], `""`, `"`))
		} else {
			cells = append(cells, text[:end])
		}
		if end == len(row) {
			return cells, nil
		}
		row, text = row[end+1:], text[end+1:]
	}
}

// cellEnd returns the end of the first cell of a row: where the delimiter or the row's end is.
// The cell is number i of its row, from 0.
func cellEnd(row []byte, delimiter byte, i int) (int, error) {
	if len(row) > 0 && row[0] == '"' {
		n := quotedEnd(row)
		if n == 0 {
			return 0, stele.Messagef("row.quotation-mark-not-closed", "cell {cell} begins with a quotation mark and has none at its end", i+1)
		}
		if n < len(row) && row[n] != delimiter {
			return 0, stele.Messagef("row.text-after-quotation-mark", `cell {cell} goes on after its quotation mark; inside a cell write it twice: ""`, i+1)
		}
		return n, nil
	}
	n := bytes.IndexByte(row, delimiter)
	if n < 0 {
		n = len(row)
	}
	if bytes.IndexByte(row[:n], '"') >= 0 {
		return 0, stele.Messagef("row.quotation-mark-inside", "cell {cell} has a quotation mark inside; write it twice, and one before and after the cell", i+1)
	}
	return n, nil
}

// TrimEnd cuts off the end of a line.
func TrimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'})
}

// AppendCell appends a cell, in quotation marks if it needs them (RFC 4180), and
// where a row could be taken for a remark.
func AppendCell(b []byte, cell string, delimiter byte) []byte {
	if !strings.ContainsAny(cell, "\"\r\n") && strings.IndexByte(cell, delimiter) < 0 && !strings.HasPrefix(cell, "#") && strings.TrimSpace(cell) == cell {
		return append(b, cell...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(cell, `"`, `""`)...)
	return append(b, '"')
}

// AppendRow appends cells as a row, without its end.
func AppendRow(b []byte, cells []string, delimiter byte) []byte {
	for i, cell := range cells {
		if i > 0 {
			b = append(b, delimiter)
		}
		b = AppendCell(b, cell, delimiter)
	}
	return b
}

// AppendTable appends rows for a spreadsheet, with commas between cells, none of which it can take for a formula.
func AppendTable(b []byte, rows iter.Seq[[]string]) []byte {
	for row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Neutralise(cell)
		}
		b = append(AppendRow(b, cells, ','), '\n')
	}
	return b
}

// formula has the characters with which a spreadsheet takes a cell for a formula, and
// runs it.
const formula = "=+-@\t\r\n"

// Neutralise returns a cell as it is exported: one that a spreadsheet could take for a
// formula gets an apostrophe in front, and so does one that [Restore] would take for
// such a cell.
func Neutralise(cell string) string {
	if cell == "" || strings.IndexByte(formula, cell[0]) < 0 && !isNeutral(cell) {
		return cell
	}
	return "'" + cell
}

// Restore undoes [Neutralise].
func Restore(cell string) string {
	if isNeutral(cell) {
		return cell[1:]
	}
	return cell
}

// isNeutral reports whether a cell has the apostrophe that Neutralise adds.
func isNeutral(cell string) bool {
	return len(cell) > 1 && cell[0] == '\'' && (cell[1] == '\'' || strings.IndexByte(formula, cell[1]) >= 0)
}
