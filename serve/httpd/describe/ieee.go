package describe

import (
	"fmt"
	"strings"
)

// ieeeMost is how many creators IEEE names; of more, only the first.
const ieeeMost = 6

// ieee returns the citation in the style of the Institute of Electrical and Electronics
// Engineers: [1] who, “what,” where, when, doi.
func (f *facts) ieee() string {
	names := ieeeNames(f.creators)
	title := curly(f.citedTitle())
	var c string
	switch f.kind.csl {
	case "article-journal":
		c = joinList(names, joinWords(quoted(title, ","), joinList(curly(f.journal), prefixed("vol. ", f.volume), prefixed("no. ", f.issue), f.ieeePages(), f.ieeeDate(), f.ieeeDOI())))
		return f.ieeeEnd(c, true)
	case "motion_picture":
		c = stopped(joinList(names, title, bracketed(f.ieeeDate())))
	case "webpage", "speech":
		c = stopped(joinList(names, joinWords(quoted(title, ","), f.ieeeDate())))
	case "book", "graphic", "song":
		c = stopped(joinList(names, title, prefixed("vol. ", f.volume))) + " " + stopped(joinList(curly(f.publisher), f.ieeeDate(), f.ieeePages()))
	case "chapter":
		where := joinList(prefixed("in ", curly(f.journal)), prefixed("vol. ", f.volume), curly(f.publisher), f.ieeeDate(), f.ieeePages())
		c = stopped(joinList(names, joinWords(quoted(title, ","), where)))
	case "thesis", "report", "map", "manuscript":
		c = stopped(joinList(names, joinWords(quoted(title, ","), joinList(curly(f.publisher), f.ieeeDate()))))
	default:
		where := joinList(curly(f.journal), prefixed("vol. ", f.volume), prefixed("no. ", f.issue))
		rest := stopped(joinList(curly(f.publisher), f.ieeePagesIn(), f.ieeeDate()))
		switch {
		case where != "":
			c = stopped(joinList(names, joinWords(quoted(title, ","), where))) + " " + rest
		case title == "":
			c = joinList(names, rest)
		default:
			c = joinList(names, quoted(title, ".")) + " " + rest
		}
	}
	return f.ieeeEnd(c, false)
}

// ieeeEnd ends a citation: it says that the thing was withdrawn, and where it is. A DOI that
// is in the list already is not said again.
func (f *facts) ieeeEnd(c string, listed bool) string {
	c = "[1] " + strings.TrimSpace(c)
	doi := f.ieeeDOI()
	withdrawn := ""
	if f.tombstone != nil {
		withdrawn = " [" + strings.TrimSuffix(f.tombstone.summary(), ".") + "]."
	}
	switch {
	case listed && doi != "":
		return flat(c + "." + withdrawn)
	case doi != "":
		return flat(c + withdrawn + " " + doi + ".")
	case listed:
		return flat(c + "," + withdrawn + " [Online]. Available: " + f.cited())
	case f.kind.csl == "webpage":
		return flat(c + withdrawn + " " + f.cited())
	case f.kind.csl == "motion_picture":
		return flat(c + withdrawn + " [Online Video]. Available: " + f.cited())
	}
	return flat(c + withdrawn + " [Online]. Available: " + f.cited())
}

func (f *facts) ieeeDOI() string { return prefixed("doi: ", f.doi()) }

// ieeePages returns the pages, and ieeePagesIn those of what is in a journal.
func (f *facts) ieeePages() string {
	if f.pages == "" {
		return ""
	}
	return pagesLabel(f.pages) + pageRange(f.pages)
}

func (f *facts) ieeePagesIn() string {
	if f.journal == "" {
		return ""
	}
	return f.ieeePages()
}

// ieeeDate returns the date, as far as the sort of thing has one: Sep. 03, 2019.
func (f *facts) ieeeDate() string {
	d := f.date
	if d.year == 0 {
		return f.when
	}
	day, month := d.day, d.month
	switch f.kind.csl {
	case "book", "chapter", "thesis", "graphic", "song":
		day, month = 0, 0
	case "article-journal", "report":
		day = 0
	}
	switch {
	case day > 0:
		return fmt.Sprintf("%s %02d, %d", ieeeMonths[month-1], day, d.year)
	case month > 0:
		return fmt.Sprintf("%s %d", ieeeMonths[month-1], d.year)
	}
	return fmt.Sprint(d.year)
}

// ieeeMonths are the abbreviations of the months.
var ieeeMonths = [...]string{"Jan.", "Feb.", "Mar.", "Apr.", "May", "Jun.", "Jul.", "Aug.", "Sep.", "Oct.", "Nov.", "Dec."}

// ieeeNames returns the creators, given names first.
func ieeeNames(agents []agent) string {
	names := make([]string, len(agents))
	for i := range agents {
		names[i] = agents[i].upright()
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n == 2:
		return names[0] + " and " + names[1]
	case n > ieeeMost:
		return names[0] + " et al."
	default:
		return strings.Join(names[:n-1], ", ") + ", and " + names[n-1]
	}
}

// quoted returns a text in quotation marks, with a sign before the last, as is done in
// America.
func quoted(s, sign string) string {
	if s == "" {
		return ""
	}
	if sign == "." && strings.HasSuffix(s, ".") {
		sign = ""
	}
	return "“" + s + sign + "”"
}

// prefixed returns a text with another before it, unless it is empty.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// stopped returns a text that ends with a full stop, unless it is empty.
func stopped(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	for _, quoted := range [...]string{".”", ",”"} {
		if strings.HasSuffix(s, quoted) {
			return strings.TrimSuffix(s, quoted) + ".”"
		}
	}
	return s + "."
}
