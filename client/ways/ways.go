// Package ways chooses among the ways to resolve a name (by rules in the DNS, at a resolver over HTTP,
// by the Handle protocol, in a registry on this machine), compares what they say, and has the last of them: package
// client, which has the others, does not know registries.
package ways

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/resolver"
)

// Choice is what a user says about the ways to try, and what there is.
type Choice struct {
	Named []client.Via // by the user, in the order in which they are tried; these are taken

	DNS, Server, Handle, Local bool // the user says something about this way
	ServerImplied              bool // the server is one that is named for everything, and does not imply a way

	Registered bool // there is a registry on this machine
	InDNS      bool // the name can be found in the DNS
	DNSFirst   bool // prefer the DNS to the local registry, unless the user says which
	Compare    bool // two ways are needed
}

// Ways returns the ways that the user names, or else those that the user says something
// about, or else all that are available; these too if there would be nothing to compare.
func (c Choice) Ways() (list []client.Via) {
	for _, via := range c.Named {
		if !slices.Contains(list, via) {
			list = append(list, via)
		}
	}
	if len(list) > 0 {
		return list
	}
	add := func(yes bool, via client.Via) {
		if yes && !slices.Contains(list, via) {
			list = append(list, via)
		}
	}
	add(c.DNS || c.DNSFirst && c.InDNS && c.Server && c.ServerImplied && !c.Local, client.ViaDNS)
	add(c.Server && !(c.Handle && c.ServerImplied), client.ViaHTTP)
	add(c.Handle, client.ViaHandle)
	add(c.Local, client.ViaLocal)
	if len(list) == 0 || c.Compare && len(list) < 2 {
		add(c.DNSFirst && c.InDNS, client.ViaDNS)
		add(c.Registered, client.ViaLocal)
		add(c.InDNS || len(list) == 0, client.ViaDNS)
	}
	return list
}

// Named is a way, and which one it is.
type Named struct {
	Via client.Via
	client.Way
}

// List is the ways to try, in order.
type List []Named

// Ways returns the ways themselves, without those of the kinds given.
func (l List) Ways(without ...client.Via) (list []client.Way) {
	for _, w := range l {
		if !slices.Contains(without, w.Via) {
			list = append(list, w.Way)
		}
	}
	return list
}

// Has reports whether one of the ways is of that kind.
func (l List) Has(via client.Via) bool {
	return slices.ContainsFunc(l, func(w Named) bool { return w.Via == via })
}

// Close ends the use of the ways.
func (l List) Close() {
	for _, w := range l {
		if c, ok := w.Way.(interface{ Close() }); ok {
			c.Close()
		}
	}
}

// ParseAccept reads media types with weights; for signatures algorithms, which are
// written in the same way.
func ParseAccept(text string, service stele.Service) (list []ddds.Preference, err error) {
	if service == stele.N2S && text != "" {
		var algorithms []string
		for word := range strings.SplitSeq(text, ",") {
			name, weight, weighted := strings.Cut(strings.TrimSpace(word), ";")
			name += "/*"
			if weighted {
				name += ";" + weight
			}
			algorithms = append(algorithms, name)
		}
		text = strings.Join(algorithms, ",")
	}
	if list, err = resolver.ParseAccept(text); service == stele.N2S {
		for i := range list {
			list[i].Range = strings.ToUpper(strings.TrimSuffix(list[i].Range, "/*"))
		}
	}
	return list, err
}
