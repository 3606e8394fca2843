package translog

import (
	"strconv"
	"strings"

	"github.com/stele-id/stele/transparency"
)

// part is what a path below the root of the log names.
type part struct {
	name  string // "checkpoint", "generations", "key", "tile" or "entries"
	era   string // how the origin of a later era ends, of a path below it; "": the path is below the root
	level int    // of a tile
	n     uint64
	width int // 256: a full tile
}

const fullWidth = 256

// parsePath reads a path as tlog-tiles has it, and nothing that means the same in another spelling: what caches keep for ever has one
// address.
func parsePath(path string) (p part, ok bool) {
	if era, below, found := strings.Cut(path, "/"); found && strings.HasPrefix(era, "g") {
		if _, ok := transparency.EraOf("/"+era, ""); !ok {
			return part{}, false
		}
		p.era, path = "/"+era, below
	}
	switch path {
	case "checkpoint", "generations", "key":
		p.name = path
		return p, p.era == "" || path == "checkpoint"
	}
	rest, ok := strings.CutPrefix(path, "tile/")
	if !ok {
		return part{}, false
	}
	level, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return part{}, false
	}
	if p.name = "tile"; level == "entries" {
		p.name = level
	} else if n, ok := parseNumber(level, 63); ok {
		p.level = int(n)
	} else {
		return part{}, false
	}
	return p, p.parseTile(rest)
}

// parseTile reads the number of a tile, in groups of three digits, and its width.
func (p *part) parseTile(text string) bool {
	number, width, partial := strings.Cut(text, ".p/")
	if p.width = fullWidth; partial {
		n, ok := parseNumber(width, fullWidth-1)
		if !ok || n == 0 {
			return false
		}
		p.width = int(n)
	}
	const maxGroups = 4 // more tiles than a log can have
	groups := strings.Split(number, "/")
	if len(groups) > maxGroups {
		return false
	}
	for i, g := range groups {
		if i < len(groups)-1 {
			var ok bool
			if g, ok = strings.CutPrefix(g, "x"); !ok || i == 0 && g == "000" {
				return false
			}
		}
		if len(g) != 3 {
			return false
		}
		for _, c := range []byte(g) {
			if c < '0' || c > '9' {
				return false
			}
			p.n = p.n*10 + uint64(c-'0')
		}
	}
	return true
}

// parseNumber reads decimal digits without zeros before them.
func parseNumber(text string, most uint64) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && n <= most && strconv.FormatUint(n, 10) == text
}

// within reports whether a log of a size has the tile.
func (p *part) within(size uint64) bool {
	const height, levels = 8, 8
	if p.level >= levels {
		return false
	}
	hashes := size >> (height * p.level)
	return p.n < hashes && p.n*fullWidth+uint64(p.width) <= hashes
}

// end returns the number of leaves up to the last one below the tile.
func (p *part) end() uint64 {
	const height = 8
	return (p.n*fullWidth + uint64(p.width)) << (height * p.level)
}

// Share returns how much work the answer to a path is, from 0 to 1: the entries of a full tile are made of 256 records.
func Share(path string) float64 {
	if p, ok := parsePath(path); ok && p.name == "entries" {
		return float64(p.width) / fullWidth
	}
	return 0
}
