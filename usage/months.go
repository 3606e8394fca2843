package usage

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// MonthOfRecord is the figures of a record in a month.
type MonthOfRecord struct {
	ID     stele.ID
	Month  Date
	Counts Counts
}

// figureNames are what documents call the figures of a record.
var figureNames = [figures]string{
	Regulars: "regular", RegularUnique: "regularUnique", Machines: "machine", MachineUnique: "machineUnique", Descriptions: "descriptions", Robots: "robots",
}

// Named returns the figures that are not 0, by name. Those that only namespaces have are left out.
func (c *Counts) Named() map[string]uint64 {
	named := make(map[string]uint64)
	for i, n := range c {
		if n > 0 && figureNames[i] != "" {
			named[figureNames[i]] = n
		}
	}
	return named
}

// Months yields the figures of all names of a scheme that begin with a prefix, by name and then by month, up to a month that belongs to it. It has sums of months
// only. The caller was found to be allowed to see all of them. What can't be read is left out.
func (b *Book) Months(ctx context.Context, key stele.NamespaceKey, until Date) iter.Seq2[MonthOfRecord, error] {
	return func(yield func(MonthOfRecord, error) bool) {
		var long []MonthOfRecord // whose names begin with the same maxCellText bytes: their cells are in another order
		flush := func() bool {
			slices.SortStableFunc(long, func(a, b MonthOfRecord) int { return strings.Compare(a.ID.String(), b.ID.String()) })
			for _, m := range long {
				if !yield(m, nil) {
					return false
				}
			}
			long = long[:0]
			return true
		}
		damaged := 0
		for c, err := range b.names(ctx, recordCells+key.Scheme+"\x00"+clip(key.Prefix, maxCellText), "") {
			if err != nil {
				yield(MonthOfRecord{}, err)
				return
			}
			scheme, inName, rest, ok := cutCell(c.Name[len(recordCells):], 2)
			if !ok {
				continue
			}
			month := dateAt(monthOf(rest))
			text, value, err := cutText(inName, c.Value)
			var m Month
			if err == nil {
				m, err = parseMonth(value)
			}
			if err != nil {
				b.damaged(&damaged, c.Name, err)
				continue
			}
			if scheme != key.Scheme || !strings.HasPrefix(text, key.Prefix) || month.Compare(until) > 0 {
				continue
			}
			if len(long) > 0 && (len(text) < maxCellText || long[0].ID.String()[:maxCellText] != text[:maxCellText]) && !flush() {
				return
			}
			found := MonthOfRecord{ID: stele.StoredID(scheme, text), Month: month, Counts: m.Sum()}
			if isLong(inName) {
				long = append(long, found)
				continue
			}
			if !yield(found, nil) {
				return
			}
		}
		flush()
	}
}

// HasMonths reports whether figures of names were ever kept.
func (b *Book) HasMonths(ctx context.Context) (bool, error) {
	for _, err := range b.names(ctx, recordCells, "") {
		return err == nil, err
	}
	return false, nil
}

// ParseDate reads a month as [Date.String] writes it.
func ParseDate(text string) (Date, error) {
	at, err := time.Parse("2006-01", text)
	if err != nil {
		return Date{}, refuse(stele.Invalid, "usage.month-malformed", `"{text}" is not a month, such as 2026-01`, text)
	}
	return DateOf(at), nil
}
