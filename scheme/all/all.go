// Package all is the one list of the schemes that Stele knows. A new scheme is a
// folder beside this one and a line here.
package all

import (
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/ark"
	"github.com/stele-id/stele/scheme/hdl"
	"github.com/stele-id/stele/scheme/ibi"
	"github.com/stele-id/stele/scheme/lsid"
	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/scheme/urn"
)

// Config is what the schemes need to know of the server or program that uses them.
type Config struct {
	// Now is the clock by which an explanation judges dates.
	Now func() time.Time
	// PURLHosts are the hosts whose http names are PURLs.
	PURLHosts []string
	// CheckedShoulders are shoulders of ARKs, such as "12345/x5", all of whose
	// names end in a check character, beside those that are known to.
	CheckedShoulders []string
}

// New returns the list, in order of precedence.
//
// Each scheme has marks of its own ("urn:", "ark:", "doi:", a prefix of digits, a
// host that is known), and a text without a host has those of one scheme only. In
// an http URL there may be two, and the order makes sure that the first one
// decides:
//
//   - A part of the path that begins with "ark:" or "urn:" is that name, whatever
//     the host. Of the two, the first decides: after /urn:, a later /ark: is a
//     part of the URN.
//   - Otherwise, on a handle proxy's host all is a handle, and so it is after
//     /hdl/, /handle/ and /doi/.
//   - On a PURL host a path that is an IBI label is that label, as on every
//     resolver's host.
func New(c Config) (*stele.Schemes, error) {
	purls, err := purl.New(c.PURLHosts...)
	if err != nil {
		return nil, err
	}
	checked := ark.DefaultChecked()
	for _, text := range c.CheckedShoulders {
		shoulder, err := ark.ParseChecked(text)
		if err != nil {
			return nil, err
		}
		checked = append(checked, shoulder)
	}
	return stele.NewSchemes(
		hdl.New(c.Now),
		lsid.New(),
		urn.New(),
		ark.New(ark.WithChecked(checked...)),
		ibi.New(c.Now),
		purls,
	)
}
