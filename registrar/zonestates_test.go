package registrar

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// said is the answer of a secondary that has a serial.
func said(serial uint32) stele.SecondaryAnswer {
	return stele.SecondaryAnswer{State: stele.SecondaryAnswers, Serial: serial}
}

// Which serial a restored zone gets, and whether it is transferred.
func TestRaiseRestored(t *testing.T) {
	silent := stele.SecondaryAnswer{State: stele.SecondarySilent}
	state := func(serial uint32) *stele.ZoneState { return &stele.ZoneState{Base: serial - 8, Last: 8} }
	floor := func(serial uint32) *uint32 { return &serial }
	shut := *state(12)
	shut.Shut = true
	for name, test := range map[string]struct {
		zone    uint32
		present *stele.ZoneState
		floor   *uint32
		answers []stele.SecondaryAnswer
		serial  uint32
		shut    bool
	}{
		"nothing is known":                          {zone: 8, serial: 8, shut: true},
		"the present":                               {zone: 8, present: state(12), serial: 13},
		"an older present":                          {zone: 8, present: state(5), serial: 9},
		"a present that is shut":                    {zone: 8, present: &shut, serial: 13, shut: true},
		"a present that is shut, and its secondary": {zone: 8, present: &shut, answers: []stele.SecondaryAnswer{said(20)}, serial: 21},
		"a present that is shut, and a floor":       {zone: 8, present: &shut, floor: floor(20), serial: 21},
		"a floor":                                   {zone: 8, floor: floor(100), serial: 101},
		"a floor below":                             {zone: 8, floor: floor(3), serial: 9},
		"a secondary":                               {zone: 8, answers: []stele.SecondaryAnswer{said(12)}, serial: 13},
		"a secondary below":                         {zone: 8, answers: []stele.SecondaryAnswer{said(7)}, serial: 9},
		"two secondaries":                           {zone: 8, answers: []stele.SecondaryAnswer{said(12), said(9)}, serial: 13},
		"a silent secondary":                        {zone: 8, answers: []stele.SecondaryAnswer{silent}, serial: 8, shut: true},
		"one of two is silent":                      {zone: 8, answers: []stele.SecondaryAnswer{said(12), silent}, serial: 13, shut: true},
		"one of two is silent, and the present":     {zone: 8, present: state(10), answers: []stele.SecondaryAnswer{said(12), silent}, serial: 13},
		"a secondary above the present":             {zone: 8, present: state(10), answers: []stele.SecondaryAnswer{said(30)}, serial: 31},
		"serials go round":                          {zone: 1<<32 - 2, answers: []stele.SecondaryAnswer{said(3)}, serial: 4},
		"a lie, far ahead":                          {zone: 8, present: state(12), answers: []stele.SecondaryAnswer{said(12), said(1<<31 + 11)}, serial: 13},
		"a lie, 2^31 away":                          {zone: 8, present: state(12), answers: []stele.SecondaryAnswer{said(12), said(1<<31 + 12)}, serial: 13},
		"a lie, and no present":                     {zone: 8, answers: []stele.SecondaryAnswer{said(12), said(1<<31 + 12)}, serial: 13, shut: true},
		"a lie alone":                               {zone: 8, answers: []stele.SecondaryAnswer{said(1<<31 + 12)}, serial: 8, shut: true},
		"not even by chance the serial of a lie":    {zone: 8, answers: []stele.SecondaryAnswer{said(8 + 1<<30 - 1), said(8 + 1<<30)}, serial: 8 + 1<<30 + 1, shut: true},
	} {
		t.Run(name, func(t *testing.T) {
			z := *state(test.zone)
			raise, ok := raiseRestored(z, test.present, test.floor, test.answers)
			if !ok {
				t.Fatal("it stays as it is")
			}
			z.Base = raise.Base
			if got := z.Serial(); got != test.serial || raise.Shut != test.shut {
				t.Errorf("serial %d, shut %v; want %d, %v", got, raise.Shut, test.serial, test.shut)
			}
		})
	}
	already := *state(8)
	already.Shut = true
	if raise, ok := raiseRestored(already, nil, nil, nil); ok {
		t.Errorf("a zone that is shut is changed: %+v", raise)
	}
}

// Whatever some secondaries say, those that are near to the zone take it afterwards.
func TestRaiseRestoredLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := stele.ZoneState{Base: rapid.Uint32().Draw(t, "base"), Last: rapid.Uint64Range(0, 1000).Draw(t, "last")}
		var answers []stele.SecondaryAnswer
		for _, serial := range rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "said") {
			answers = append(answers, said(serial))
		}
		for _, offset := range rapid.SliceOfN(rapid.Int32Range(-(1<<30-1), 1<<30-1), 1, 5).Draw(t, "near") {
			answers = append(answers, said(z.Serial()+uint32(offset)))
		}
		raise, ok := raiseRestored(z, nil, nil, answers)
		if !ok {
			t.Fatal("it stays as it is")
		}
		raised := z
		raised.Base = raise.Base
		if !stele.SerialAfter(raised.Serial(), z.Serial()) {
			t.Fatalf("the serial went from %d to %d", z.Serial(), raised.Serial())
		}
		for _, a := range answers {
			switch near := stele.SerialNear(a.Serial, z.Serial()); {
			case near && !stele.SerialAfter(raised.Serial(), a.Serial):
				t.Fatalf("a secondary has %d, and the zone %d", a.Serial, raised.Serial())
			case !near && !raise.Shut:
				t.Fatalf("a secondary has %d, and the zone, with %d, is open", a.Serial, raised.Serial())
			case a.Serial == raised.Serial():
				t.Fatalf("%d is used again", a.Serial)
			}
		}
	})
}
