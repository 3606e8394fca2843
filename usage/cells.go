package usage

import (
	"cmp"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// All cells of the package. The name of each begins with registrar.UsageCells and a letter:
//
//	r  scheme 00 text 00 month        figures of a name in a month; see appendMonth
//	n  scheme 00 prefix 00 month      figures of a namespace in a month, the same
//	h  scheme 00 prefix 00 month      referring hosts of a namespace in a month; see appendTexts
//	c  scheme 00 prefix 00 month      countries of the readers of a namespace in a month, the same
//	f  scheme 00 prefix 00 day        names that lead nowhere, of a day; see appendTexts
//	d  zone 00 month                  DNS answers of a zone by hour; see appendHours
//	s  scheme 00 prefix               how the use of a namespace is counted: JSON, see registrar.UsageSettings
//	w  server                         number of the last commit of a server: uvarint, and the time; see mark
//	x  server, number of the part     figures of names that are not in their cells yet; see journalLine
//	y  server                         how far the journal of a server is in the cells; see journalHead
//	i  digest of the first line       how many log files with this line were begun: decimal
//	i  digests of first lines         how much of a log file is counted; see logMark
//	b                                 when counting began: RFC 3339
//	m                                 the last month whose days were added up
//
// month is two bytes, months since January of the year 0, and day four bytes, days since 1970: the greatest first. Names have no zero byte. A
// name of more than maxCellText bytes has its first maxCellText, then 01 and 16 bytes of the SHA-256 of the whole; its
// value begins with the name: its length as two bytes, and the text.
//
// All servers of a database add to the same cells: each commit is on the condition that no other one changed them since
// they were read, and is made again otherwise.
const (
	recordCells  = registrar.UsageCells + "r"
	spaceCells   = registrar.UsageCells + "n"
	hostCells    = registrar.UsageCells + "h"
	landCells    = registrar.UsageCells + "c"
	failedCells  = registrar.UsageCells + "f"
	zoneCells    = registrar.UsageCells + "d"
	journalCells = registrar.UsageCells + "x"
	headCells    = registrar.UsageCells + "y"
	markCells    = registrar.UsageCells + "w"
	beginCell    = registrar.UsageCells + "b"
	rolledCell   = registrar.UsageCells + "m"
)

// maxCellText is how many bytes of a name stand in the name of its cell.
const maxCellText = registrar.MaxUsageText

// maxFailedName is how long a name that leads nowhere may be, to be kept.
const maxFailedName = 300

// Date is a month.
type Date struct {
	Year  int
	Month time.Month
}

// DateOf returns the month of a time.
func DateOf(t time.Time) Date {
	t = t.UTC()
	return Date{t.Year(), t.Month()}
}

// number returns the months since January of the year 0.
func (d Date) number() int { return d.Year*12 + int(d.Month) - 1 }

func dateAt(number int) Date { return Date{number / 12, time.Month(number%12 + 1)} }

// Next returns the month after n months.
func (d Date) Next(n int) Date { return dateAt(d.number() + n) }

// Compare orders months.
func (d Date) Compare(other Date) int { return cmp.Compare(d.number(), other.number()) }

// String returns the month as 2026-11.
func (d Date) String() string { return d.begin().Format("2006-01") }

func (d Date) begin() time.Time { return time.Date(d.Year, d.Month, 1, 0, 0, 0, 0, time.UTC) }

func appendMonthNumber(b []byte, number int) []byte { return append(b, byte(number>>8), byte(number)) }

// isLong reports whether a text does not fit into the name of a cell.
func isLong(text string) bool { return len(text) > maxCellText }

// cellName returns the name of the cell of a text in a month.
func cellName(kind, scheme, text string, month int) string {
	b := append(append([]byte(kind), scheme...), 0)
	return string(appendMonthNumber(append(registrar.AppendUsageText(b, text), 0), month))
}

// recordCell returns the name of the cell of a name in a month.
func recordCell(id stele.ID, month int) string {
	return cellName(recordCells, id.Scheme(), id.String(), month)
}

func spaceCell(key stele.NamespaceKey, month int) string {
	return cellName(spaceCells, key.Scheme, key.Prefix, month)
}

func failedCell(key stele.NamespaceKey, day int32) string {
	b := append(append([]byte(failedCells), key.Scheme...), 0)
	b = append(registrar.AppendUsageText(b, key.Prefix), 0)
	return string(append(b, byte(day>>24), byte(day>>16), byte(day>>8), byte(day)))
}

// cutCell returns the scheme and the text of a cell's name without what its kind is, and what follows them.
func cutCell(name string, follows int) (scheme, text, rest string, ok bool) {
	at := len(name) - follows - 1
	if at < 0 || name[at] != 0 {
		return "", "", "", false
	}
	scheme, text, ok = strings.Cut(name[:at], "\x00")
	return scheme, text, name[at+1:], ok
}

// monthOf returns the month number at the end of a cell's name.
func monthOf(rest string) int { return int(rest[0])<<8 | int(rest[1]) }

// withText puts a long text before the value of its cell.
func withText(text string, value []byte) []byte {
	if !isLong(text) {
		return value
	}
	b := append([]byte{byte(len(text) >> 8), byte(len(text))}, text...)
	return append(b, value...)
}

// cutText returns the text of a cell and its value: text is what stands in the name.
func cutText(text string, value []byte) (string, []byte, error) {
	if !isLong(text) {
		return text, value, nil
	}
	if len(value) < 2 {
		return "", nil, errDamaged()
	}
	n := int(value[0])<<8 | int(value[1])
	if len(value)-2 < n {
		return "", nil, errDamaged()
	}
	return string(value[2 : 2+n]), value[2+n:], nil
}
