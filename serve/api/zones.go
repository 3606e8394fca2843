package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// zoneStateDocument is what is kept about a zone.
type zoneStateDocument struct {
	Zone   string `json:"zone" example:"paradisec.example."`
	Serial uint32 `json:"serial" doc:"The serial of its SOA record."`
	Base   uint32 `json:"base" doc:"What is added to the number of the last change to make the serial."`
	Last   uint64 `json:"last" doc:"The last change that touched it."`
	Since  uint64 `json:"since" doc:"A secondary that has it from before this change gets it whole."`
	Shut   bool   `json:"shut,omitempty" doc:"It is not transferred, since it is unknown which serial the secondaries have; raise it above that."`
	At     uint64 `json:"at" doc:"The last change of the registry."`
}

func newZoneStateDocument(z stele.ZoneState) zoneStateDocument {
	return zoneStateDocument{Zone: z.Zone, Serial: z.Serial(), Base: z.Base, Last: z.Last, Since: z.Since, Shut: z.Shut, At: z.At}
}

// zoneStatePage is a part of a list of zones.
type zoneStatePage struct {
	Items []zoneStateDocument `json:"items"`
	Next  string              `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// checkedZone is a zone compared with its secondaries.
type checkedZone struct {
	Zone        string             `json:"zone" example:"paradisec.example."`
	Serial      uint32             `json:"serial" doc:"The serial of its SOA record."`
	Shut        bool               `json:"shut,omitempty" doc:"It is not transferred, since it is not known which serial the secondaries have; raise it above that."`
	Secondaries []checkedSecondary `json:"secondaries" doc:"What each of its secondaries said."`
}

// checkedSecondary is what a secondary said.
type checkedSecondary struct {
	At     string  `json:"at" doc:"Its address, with a port; the network or the key of one without an address." example:"192.0.2.53:53"`
	State  string  `json:"state" enum:"same,behind,ahead,far,refuses,lame,silent,unasked" doc:"Its copy compared with the zone: it has the same serial, a lower one, a higher one (then it takes no changes), or one that is too far away to be compared; it refuses to answer, does not have the zone, or does not answer; or it was not asked."`
	Serial *uint32 `json:"serial,omitempty" doc:"The serial of its copy."`
	Why    string  `json:"why,omitempty" doc:"Why there is no serial."`
}

func newCheckedZone(zone string, serial uint32, shut bool, answers []stele.SecondaryAnswer) checkedZone {
	z := checkedZone{Zone: zone, Serial: serial, Shut: shut, Secondaries: []checkedSecondary{}}
	for _, a := range answers {
		a = a.Against(serial)
		one := checkedSecondary{At: a.At, State: string(a.State), Why: legible(a.Why)}
		if a.HasSerial() {
			one.Serial = &a.Serial
		}
		z.Secondaries = append(z.Secondaries, one)
	}
	return z
}

// zoneRaiseDocument says above which serial a zone is raised.
type zoneRaiseDocument struct {
	Above *uint32 `json:"above,omitempty" doc:"The highest serial that a secondary has. Without it the zone gets the serial after its own." example:"2031050201"`
}

func (h *Handler) zoneOperations() []operation {
	const group = "Zones of the DNS"
	return []operation{{
		name: "listZones", method: http.MethodGet, path: "zones", group: group,
		summary: "List zones and their serials",
		about:   "Those that are published, and those that were.",
		asks:    administrator, scope: auth.ScopeBackup,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: zoneStatePage{}}},
		serve:   h.listZones,
	}, {
		name: "checkSecondaries", method: http.MethodGet, path: "secondaries/{zone}", group: group,
		tail:    parameter{name: "zone", about: "The name of the zone", example: "paradisec.example."},
		summary: "Compare a zone with its secondaries",
		about:   "The server asks each secondary that is told of changes for the serial of its copy. It asks public addresses, and those that its setting notify-allow names, and does not wait for long.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The zone and its secondaries.", value: checkedZone{}}},
		fails:   []int{404},
		serve:   h.checkSecondaries,
	}, {
		name: "raiseZone", method: http.MethodPost, path: "zones/{zone}", group: group,
		tail:    parameter{name: "zone", about: "The name of the zone", example: "paradisec.example."},
		summary: "Give a zone a higher serial",
		about:   "All secondaries take the whole zone next. It opens a zone that a restore has shut for transfers.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{jsonType}, limit: maxBody, value: zoneRaiseDocument{}, example: `{"above":2031050201}`},
		answers: []answer{{status: 200, about: "The zone as it is now.", value: zoneStateDocument{}}},
		fails:   []int{404, 409},
		serve:   h.raiseZone,
	}}
}

// listZones lists zones. A cursor is the name of the last one.
func (h *Handler) listZones(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	page := newPage(c)
	for z, err := range h.o.Registrar.ZoneStates(c.ctx) {
		if err != nil {
			return err
		}
		if z.Zone <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(z.Zone)
		if err := page.addValue(newZoneStateDocument(z)); err != nil {
			return err
		}
	}
	return page.end()
}

// checkSecondaries compares a zone with its secondaries.
func (h *Handler) checkSecondaries(c *call) error {
	if h.o.Upkeep.Secondaries == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: errors.New("this server asks no secondaries")}
	}
	// A zone may change while its secondaries are asked, and one that has taken the change
	// already would seem to be ahead of it. So they are compared anew.
	z, err := h.zoneState(c)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		answers, err := h.o.Upkeep.Secondaries(c.ctx, z.Zone)
		if err != nil {
			return err
		}
		before := z.Serial()
		if z, err = h.zoneState(c); err != nil {
			return err
		}
		if z.Serial() == before || try == compareTries { // then a secondary may seem to lag, which does no harm
			return c.reply(http.StatusOK, newCheckedZone(z.Zone, z.Serial(), z.Shut, answers))
		}
	}
}

// compareTries is how often a zone that changes is compared with its secondaries.
const compareTries = 3

// zoneState returns the state of the zone that a call is about.
func (h *Handler) zoneState(c *call) (stele.ZoneState, error) {
	for z, err := range h.o.Registrar.ZoneStates(c.ctx) {
		if err != nil || z.Zone == c.tail {
			return z, err
		}
	}
	return stele.ZoneState{}, &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: fmt.Errorf("there is no zone %.100q here; 'stele zone ls' lists them", c.tail)}
}

// raiseZone gives a zone a higher serial.
func (h *Handler) raiseZone(c *call) error {
	var want zoneRaiseDocument
	if err := c.decode(&want); err != nil {
		return err
	}
	z, err := h.o.Registrar.RaiseZone(c.ctx, c.tail, want.Above)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, newZoneStateDocument(z))
}
