package minting

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// The default ports of an IBI server: they are left out in its labels (algorithm 1, line
// 12, and algorithm 5, line 1).
const (
	DefaultHostPort = 80
	DefaultIPPort   = 800
)

// setting is a setting of a minter, by the name that flags and messages use for it.
type setting struct {
	name string
	copy func(to, from *stele.Minter)
}

var settings = []setting{
	{"minter", func(to, from *stele.Minter) { to.Kind = from.Kind }},
	{"host", func(to, from *stele.Minter) { to.Host = from.Host }},
	{"port", func(to, from *stele.Minter) { to.Port = from.Port }},
	{"ip", func(to, from *stele.Minter) { to.IP = from.IP }},
	{"ip-port", func(to, from *stele.Minter) { to.IPPort = from.IPPort }},
	{"allow-private", func(to, from *stele.Minter) { to.AllowPrivate = from.AllowPrivate }},
	{"granularity", func(to, from *stele.Minter) { to.Granularity = from.Granularity }},
	{"template", func(to, from *stele.Minter) { to.Template = from.Template }},
	{"seed", func(to, from *stele.Minter) { to.Seed = from.Seed }},
	{"order", func(to, from *stele.Minter) { to.Order = from.Order }},
	{"expand", func(to, from *stele.Minter) { to.Expand = from.Expand }},
}

// Configure copies those settings of a minter that were given. A change of the kind of
// minter removes the settings of the former kind. A host and an address without ports get the
// default ones.
func Configure(m, from *stele.Minter, given func(setting string) bool) {
	if given("minter") && m.Kind != from.Kind {
		*m = stele.Minter{}
	}
	order := m.Order
	for _, s := range settings {
		if given(s.name) {
			s.copy(m, from)
		}
	}
	if m.Order != order && !given("seed") {
		m.Seed = 0 // it meant another order
	}
	if m.Kind == stele.MinterIBI {
		if m.Host != "" {
			m.Port = cmp.Or(m.Port, DefaultHostPort)
		}
		if m.IP != "" {
			m.IPPort = cmp.Or(m.IPPort, DefaultIPPort)
		}
	}
}

// Conflicting returns the setting that was given and differs from what a minter has; "" if none does.
// The granularity of dates may change at any time, so it is never in conflict.
func Conflicting(have, want *stele.Minter, given func(setting string) bool) string {
	if have.Kind != want.Kind {
		return "minter " + string(want.Kind)
	}
	for _, s := range settings {
		if s.name == "granularity" || !given(s.name) {
			continue
		}
		as := *have
		if s.copy(&as, want); as != *have {
			return s.name
		}
	}
	return ""
}

// Describe says how a minter makes names, by the names of its settings; "" if it makes none.
func Describe(m *stele.Minter) string {
	if m.Kind == stele.NoMinter {
		return ""
	}
	words := []string{string(m.Kind)}
	say := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	say(m.Host != "", "host %s", m.Host)
	say(m.Port != 0, "port %d", m.Port)
	say(m.IP != "", "ip %s", m.IP)
	say(m.IPPort != 0, "ip-port %d", m.IPPort)
	say(m.AllowPrivate, "allow-private")
	say(m.Granularity != "", "granularity %s", m.Granularity)
	say(m.Template != "", "template %s", m.Template)
	say(m.Seed != 0, "seed %d", m.Seed)
	say(m.Order != "", "order %s", m.Order)
	say(m.Expand != 0, "expand %d", m.Expand)
	return strings.Join(words, ", ")
}

// SameGranularity reports whether two texts are spellings of one granularity; an empty
// text is a second. Invalid texts differ.
func SameGranularity(a, b string) bool {
	read := func(text string) (mint.Granularity, error) {
		if text == "" {
			return mint.Second, nil
		}
		return mint.ParseGranularity(text)
	}
	x, errX := read(a)
	y, errY := read(b)
	return errX == nil && errY == nil && x == y
}

// BlockFor returns how many names of a template a command should reserve at a time to make
// n: no more than it will use. A server reserves many, since it runs on; a command would lose
// them at its end.
func BlockFor(n int) int {
	const most = 1000
	blocks := (n + most - 1) / most
	return (n + blocks - 1) / blocks
}
