package deskpage

import (
	"html/template"
	"time"

	"github.com/stele-id/stele/web/figures"
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
	Facts        []figures.Fact
	Chart        template.HTML
	Table        figures.Table

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

// UseList is a part of the figures of a namespace.
type UseList struct {
	ID, Title string
	Note      string
	None      string // what is said if it has no rows; may be empty
	Chart     template.HTML
	Figures   figures.Table
	More      string // URL of all of it; may be empty
	MoreText  string
}

// UseSettings is how the use of a namespace is counted.
type UseSettings struct {
	Key      string
	CountAll bool
	Public   bool   // all may see figures of months
	URL      string // of the public page, if they may
	MaySet   bool
	By       string // the user who changed it last; "" if it is as usual
	Changed  time.Time
}
