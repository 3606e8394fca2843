package deskpage

import (
	"html/template"
	"time"
)

// UseCard is the use of a name beside its form.
type UseCard struct {
	URL   string
	Total string        // in words
	Chart template.HTML // empty if nothing was counted
}

// Usage is the page of the figures of a name or a namespace.
type Usage struct {
	Frame
	Of, ID, Back string // its title, its name, and the URL of its page
	Record       bool
	Began        time.Time // zero if nothing was counted yet
	Damaged      int       // figures that can't be read
	Facts        []Fact
	Chart        template.HTML
	Table        Figures

	Periods     []Choose
	Kept        []Kept
	From, Until Field
	By          []Option
	Lists       []UseList    // of a namespace
	Settings    *UseSettings // of a namespace
	Overview    string       // URL of the page of which this is a part; "" if it is that page
}

// Choose is a link to another view of the same.
type Choose struct {
	Text, URL string
	Current   bool
}

// Fact is a figure that stands by itself.
type Fact struct {
	Number uint64
	Text   string
	Note   string // may be empty
}

// Figures is a table of figures.
type Figures struct {
	Caption string // for readers who do not see it
	First   string // head of the first column
	Heads   []string
	Rows    []FigureRow
	Total   *FigureRow // nil if there is none
	CSV     string     // URL of the same as a file
	Folded  bool       // it is long
}

// FigureRow is a line of such a table.
type FigureRow struct {
	Text   string
	Name   bool   // the text is a name, not words
	URL    string // may be empty
	Note   string // may be empty
	Share  int    // of the greatest figure, in hundredths; 0: none is drawn
	Values []uint64
}

// UseList is a part of the figures of a namespace.
type UseList struct {
	ID, Title string
	Note      string
	None      string // what is said if it has no rows; may be empty
	Chart     template.HTML
	Figures   Figures
	More      string // URL of all of it; may be empty
	MoreText  string
}

// UseSettings is how the use of a namespace is counted.
type UseSettings struct {
	Key      string
	CountAll bool
	MaySet   bool
	By       string // the user who changed it last; "" if it is as usual
	Changed  time.Time
}
