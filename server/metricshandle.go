package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stele-id/stele/serve/hdld"
)

// addHandle adds the counts of the server of the Handle protocol.
func (m *metrics) addHandle(stats func() hdld.Stats) {
	add := func(name, help string, of func(hdld.Stats) uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "stele_handle_" + name + "_total", Help: help},
			func() float64 { return float64(of(stats())) }))
	}
	add("udp", "Messages of the Handle protocol answered over UDP.", func(s hdld.Stats) uint64 { return s.UDP })
	add("tcp", "Messages of the Handle protocol answered over TCP.", func(s hdld.Stats) uint64 { return s.TCP })
	add("http", "Messages of the Handle protocol answered in HTTP.", func(s hdld.Stats) uint64 { return s.HTTP })
	add("unreadable", "Requests that are no messages of the Handle protocol.", func(s hdld.Stats) uint64 { return s.Unreadable })
	add("challenges", "Clients of the Handle protocol that were asked who they are.", func(s hdld.Stats) uint64 { return s.Challenged })
	add("proved", "Clients of the Handle protocol that proved who they are.", func(s hdld.Stats) uint64 { return s.Proved })
	add("refused", "Clients of the Handle protocol whose proof was wrong.", func(s hdld.Stats) uint64 { return s.Refused })
	add("sessions", "Sessions of the Handle protocol that were set up.", func(s hdld.Stats) uint64 { return s.Sessions })
	add("held", "Answers over UDP held back because the address may be forged.", func(s hdld.Stats) uint64 { return s.Held })
	add("dropped", "Requests over UDP dropped because too many others waited for the registry.", func(s hdld.Stats) uint64 { return s.Dropped })
	add("turned_away", "TCP connections closed at once, since there were too many.", func(s hdld.Stats) uint64 { return s.Turned })
}
