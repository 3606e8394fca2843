package usage

import (
	"crypto/sha256"
	_ "embed" // the list of agents
	"encoding/hex"
	"encoding/json"
	"hash/maphash"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

//go:embed agents.tsv
var ownAgents string

// maxAgent is how many bytes of a user agent are looked at.
const maxAgent = 512

// Limits on lists of user agents.
const (
	maxList     = 1 << 20 // bytes
	maxPatterns = 5000
	maxPattern  = 1000 // bytes
)

// Agents says what user agents are. It is used by many goroutines at once.
type Agents struct {
	list   []agentRule
	robots []*regexp.Regexp // of COUNTER's list
	sum    string           // digest of both lists
}

// Digest tells lists apart.
func (a *Agents) Digest() string { return a.sum }

// agentRule is a line of the list.
type agentRule struct {
	class  Class
	match  *regexp.Regexp
	since  time.Time
	reason string
}

// NewAgents returns this program's own list, and that of COUNTER if it is not nil: the file
// COUNTER_Robots_list.json.
func NewAgents(counter io.Reader) (*Agents, error) {
	list, err := parseAgents(ownAgents)
	if err != nil {
		return nil, err
	}
	a := &Agents{list: list}
	sum := sha256.New()
	_, _ = io.WriteString(sum, ownAgents) // a hash never fails
	if counter != nil {
		a.robots, err = parseRobots(io.TeeReader(counter, sum))
	}
	a.sum = hex.EncodeToString(sum.Sum(nil))
	return a, err
}

// parseAgents reads a list of our own; agents.tsv says how it is written.
func parseAgents(text string) (list []agentRule, err error) {
	if len(text) > maxList {
		return nil, refuse(stele.Invalid, "usage.list-too-long", "a list of user agents has at most {most} bytes", maxList)
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || fields[3] == "" || len(list) >= maxPatterns {
			return nil, badLine(number)
		}
		rule := agentRule{reason: fields[3]}
		switch fields[0] {
		case "regular":
			rule.class = Regular
		case "machine":
			rule.class = Machine
		case "robot":
			rule.class = Robot
		case "ignored":
			rule.class = Ignored
		default:
			return nil, badLine(number)
		}
		if rule.since, err = time.Parse(time.DateOnly, fields[1]); err != nil {
			return nil, badLine(number)
		}
		if rule.match, err = compile(fields[2]); err != nil {
			return nil, badLine(number)
		}
		list = append(list, rule)
	}
	return list, nil
}

func badLine(number int) error {
	return refuse(stele.Invalid, "usage.list-line", "line {line} of the list of user agents is not a class, a date, a pattern and a reason with tabs between them", number)
}

func compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, refuse(stele.Invalid, "usage.pattern-too-long", "a pattern has at most {most} bytes", maxPattern)
	}
	return regexp.Compile("(?i)" + pattern)
}

// parseRobots reads the list of COUNTER: [{"pattern": "bot", ...}, ...].
func parseRobots(r io.Reader) (list []*regexp.Regexp, err error) {
	wrong := func(cause error) error {
		return refuse(stele.Invalid, "usage.robots-file", "the list of robots is not the file COUNTER_Robots_list.json: {cause}", cause)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxList+1))
	switch {
	case err != nil:
		return nil, wrong(err)
	case len(text) > maxList:
		return nil, refuse(stele.Invalid, "usage.list-too-long", "a list of user agents has at most {most} bytes", maxList)
	}
	var entries []struct {
		Pattern string `json:"pattern"`
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, wrong(err)
	}
	for _, e := range entries {
		if e.Pattern == "" || len(list) >= maxPatterns {
			return nil, refuse(stele.Invalid, "usage.robots-entry", "an entry of the list of robots has no pattern, or there are more than {most}", maxPatterns)
		}
		match, err := compile(e.Pattern)
		if err != nil {
			return nil, wrong(err)
		}
		list = append(list, match)
	}
	return list, nil
}

// Class returns what a user agent is. It takes up to 100 microseconds.
func (a *Agents) Class(agent string) Class {
	agent = clip(agent, maxAgent)
	for i := range a.list {
		if a.list[i].match.MatchString(agent) {
			return a.list[i].class
		}
	}
	for _, match := range a.robots {
		if match.MatchString(agent) {
			return Robot
		}
	}
	return Regular
}

func clip(text string, most int) string { return text[:min(len(text), most)] }

// classes remembers the classes of user agents by their hashes. Readers take no lock. A hash has a row of places, so that agents that are seen often do not
// replace each other: to find a class again takes many microseconds.
type classes struct {
	table [512][classRow]atomic.Uint64 // the hash, with the class in its lowest bits. It is the first, so that a row is one line of the processor's cache
	seed  maphash.Seed
}

const (
	classBits = 7
	classRow  = 8 // a line of the processor's cache
)

func newClasses() *classes { return &classes{seed: maphash.MakeSeed()} }

// hash returns the hash of an agent.
func (c *classes) hash(agent string) uint64 { return maphash.String(c.seed, agent) }

// find returns the class of the agent with a hash; unclassified if it is not known.
func (c *classes) find(h uint64) Class {
	row := &c.table[h>>55]
	for i := range row {
		if have := row[i].Load(); have&^classBits == h&^classBits {
			return Class(have & classBits)
		}
	}
	return unclassified
}

// keep remembers a class: in the place that the hash has, or a free one, or in that of another agent. One goroutine calls it.
func (c *classes) keep(h uint64, class Class) {
	row := &c.table[h>>55]
	at := int(h>>classBits) % classRow
	for i := range row {
		if have := row[i].Load(); have == 0 || have&^classBits == h&^classBits {
			at = i
			break
		}
	}
	row[at].Store(h&^classBits | uint64(class))
}
