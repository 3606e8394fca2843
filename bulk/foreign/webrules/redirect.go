package webrules

// Redirect is a redirect that is not a line of Apache httpd, but means one: a RedirectMatch, whose URL is as it is written.
type Redirect struct {
	Line    int
	Text    string // for people
	Pattern string // of whole paths
	To      string // URL, in which $1 is what a group matched
	Status  int
}

// Rule returns the redirect as a rule of the folder with a path.
func (d *Redirect) Rule(path string) *Rule {
	r := &Rule{Line: d.Line, Text: d.Text, status: d.Status}
	r.Match(d.Pattern, d.To, path)
	return r
}

// IsBelow reports whether the rule may answer for names of its folder.
func (r *Rule) IsBelow() bool { return !r.never }
