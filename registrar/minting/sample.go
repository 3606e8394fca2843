package minting

import (
	"encoding/binary"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// Samples returns names such as the minter of a namespace makes, to show how they look: of a
// template those after a number, of dates that of a time. It gives no names: a caller may get them.
// There are fewer than n, or none, if the minter makes no more, or if its settings are wrong.
func Samples(schemes *stele.Schemes, ns *stele.Namespace, given uint64, at time.Time, n int) (list []string) {
	if schemes.Lookup(ns.Scheme) == nil || ns.Prefix == "" {
		return nil
	}
	switch ns.Minter.Kind {
	case stele.MinterNOID:
		t, err := templateOf(schemes, ns)
		if err != nil {
			return nil
		}
		for name, err := range t.sample(given, n) {
			if err == nil {
				list = append(list, name)
			}
		}
	case stele.MinterUUID:
		link, err := joint(schemes, ns, uuid{}.String())
		for i := range uint64(n) {
			if err != nil {
				break
			}
			clock := uint64(at.UnixMilli())<<12 | i
			var bits [8]byte // which only look random
			binary.BigEndian.PutUint64(bits[:], (clock+1)*0x9e3779b97f4a7c15)
			list = append(list, ns.Prefix+link+newUUID(clock, bits).String())
		}
	case stele.MinterIBI, stele.MinterPILIN:
		if name := dateSample(schemes, ns, at); name != "" {
			list = append(list, name)
		}
	}
	return list
}

// dateSample returns the name of a time; "" if it can't be made.
func dateSample(schemes *stele.Schemes, ns *stele.Namespace, at time.Time) string {
	made, err := dateNamesOf(schemes, ns)
	if err != nil || made == nil {
		return ""
	}
	g, err := Granularity(ns)
	if err != nil {
		return ""
	}
	now, err := mint.DateOf(at)
	if err != nil {
		return ""
	}
	var d mint.Distributor
	date, _, _ := d.NextExact(now, g)
	label, err := made.label(draw{date: date})
	if err != nil || !label.ID.IsValid() {
		return ""
	}
	return label.ID.String()
}
