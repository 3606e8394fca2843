package ibi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// Explain tells host or IP address, port, date and directories of a label.
func (s *Scheme) Explain(text string) (stele.Explanation, error) {
	from, ok := find(text)
	if !ok {
		return stele.Explanation{}, stele.ErrForeign
	}
	var l label
	if err := from.read(text, &l); err != nil {
		return stele.Explanation{}, err
	}
	id, err := stele.NewID(Name, l.text)
	if err != nil {
		return stele.Explanation{}, err
	}
	x := stele.Explanation{ID: id, Form: l.form, Spellings: s.Spellings(id)}
	if from.extra != "" {
		x.Warnings = append(x.Warnings, "The URL's query and fragment are not part of the name.")
	}
	if l.form == FormRep {
		l.explainRep(&x)
	} else {
		l.explainIBIp(&x)
	}
	if now, err := mint.DateOf(s.now()); err == nil && l.date.Compare(now) > 0 {
		x.Warnings = append(x.Warnings, "The date lies in the future: no distributor has issued it yet.")
	}
	return x, nil
}

func (l label) explainRep(x *stele.Explanation) {
	note := ""
	if l.port == defaultRepPort && !l.legacy {
		note = "left out in the label"
	}
	directories := strings.Split(l.text, "/")
	x.Parts = stele.Parts{
		{Name: "host", Value: l.hostName()},
		{Name: "port", Value: int(l.port), Note: note},
		{Name: "time", Value: l.date.String(), Note: l.twin()},
		{Name: "directories", Value: directories},
	}
	if l.legacy {
		x.Warnings = append(x.Warnings, `The "@" before the port is of labels from before August 2010. It is another label than the one with "." or without the port.`)
	}
	for _, dir := range directories {
		if base, _, _ := lex.Cut(dir, '.'); slices.Contains(windowsDevices, base) {
			x.Warnings = append(x.Warnings, fmt.Sprintf("Windows can't have a directory named %q.", dir))
		}
	}
}

// twin returns the date as the other form writes it, so that the two labels of one
// item can be recognised.
func (l label) twin() string {
	switch {
	case l.form == FormIBIp:
		return "a repository name ends in " + string(appendRepSuffix(nil, l.date))
	case l.date.Unix() >= epoch:
		return "an IBIp ends in " + string(appendIBIpSuffix(nil, l.date))
	}
	return ""
}

func (l label) explainIBIp(x *stele.Explanation) {
	note := ""
	if l.port == defaultIBIpPort {
		note = "left out in the label"
	}
	x.Parts = stele.Parts{
		{Name: "ip", Value: l.addr.String()},
		{Name: "port", Value: int(l.port), Note: note},
		{Name: "time", Value: l.date.String(), Note: l.twin()},
	}
	if why := NotPublic(l.addr); why != "" {
		x.Warnings = append(x.Warnings, fmt.Sprintf("%s is %s address, which other hosts have too: the label is unique by luck only.", l.addr, why))
	}
	// Algorithm 5 may make another label of the address: then the address in this label
	// was not canonical.
	prefix, err := IBIpPrefix(l.addr, l.port, AnyAddress)
	if err != nil || strings.HasPrefix(l.text, prefix.text+"/") {
		return
	}
	var buf [48]byte
	sep := separator(l.text)
	text := addrText(&buf, l.text[:sep], l.text[sep] == 'X')
	x.Warnings = append(x.Warnings, fmt.Sprintf("The address is encoded as %q, which is not how it is written today; %s/%s is another label.",
		text, prefix, appendIBIpSuffix(nil, l.date)))
}

// windowsDevices are names that Windows reserves in every directory, with any
// extension.
var windowsDevices = []string{
	"con", "prn", "aux", "nul",
	"com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
}
