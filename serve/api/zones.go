package api

import (
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

func newZoneStateDocument(z stele.ZoneState) apijson.ZoneState {
	return apijson.ZoneState{Zone: z.Zone, Serial: z.Serial(), Base: z.Base, Last: z.Last, Since: z.Since, Shut: z.Shut, At: z.At}
}

func newCheckedZone(zone string, serial uint32, shut bool, answers []stele.SecondaryAnswer) apijson.CheckedZone {
	z := apijson.CheckedZone{Zone: zone, Serial: serial, Shut: shut, Secondaries: []apijson.CheckedSecondary{}}
	for _, a := range answers {
		a = a.Against(serial)
		one := apijson.CheckedSecondary{At: a.At, State: string(a.State), Why: apijson.Legible(a.Why)}
		if a.HasSerial() {
			one.Serial = &a.Serial
		}
		z.Secondaries = append(z.Secondaries, one)
	}
	return z
}

func (h *Handler) zoneOperations() []operation {
	const group = "Zones of the DNS"
	return []operation{{
		name: "listZones", method: http.MethodGet, path: "zones", group: group,
		summary: "List zones and their serials",
		about:   "Those that are published, and those that were.",
		asks:    administrator, scope: auth.ScopeBackup,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.ZoneStatePage{}}},
		serve:   h.listZones,
	}, {
		name: "checkSecondaries", method: http.MethodGet, path: "secondaries/{zone}", group: group,
		tail:    parameter{name: "zone", about: "The name of the zone", example: "paradisec.example."},
		summary: "Compare a zone with its secondaries",
		about:   "The server asks each secondary that is told of changes for the serial of its copy. It asks public addresses, and those that its setting notify-allow names, and does not wait for long.",
		asks:    administrator, scope: auth.ScopeAdmin,
		answers: []answer{{status: 200, about: "The zone and its secondaries.", value: apijson.CheckedZone{}}},
		fails:   []int{404},
		serve:   h.checkSecondaries,
	}, {
		name: "raiseZone", method: http.MethodPost, path: "zones/{zone}", group: group,
		tail:    parameter{name: "zone", about: "The name of the zone", example: "paradisec.example."},
		summary: "Raise the serial of a zone",
		about:   "All secondaries take the whole zone next. It opens a zone that a restore has shut for transfers.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.ZoneRaise{}, example: `{"above":2031050201}`},
		answers: []answer{{status: 200, about: "The zone as it is now.", value: apijson.ZoneState{}}},
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
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("zone.secondaries-not-asked", "this server asks no secondaries")}
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
	return stele.ZoneState{}, &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("zone.unknown", `there is no zone "{zone}" here; 'stele zone ls' lists them`, c.tail)}
}

// raiseZone gives a zone a higher serial.
func (h *Handler) raiseZone(c *call) error {
	var want apijson.ZoneRaise
	if err := c.decode(&want); err != nil {
		return err
	}
	z, err := h.o.Registrar.RaiseZone(c.ctx, c.tail, want.Above)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, newZoneStateDocument(z))
}
