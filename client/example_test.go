package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/scheme/all"
)

// A program that resolves URNs makes one DNS, which remembers answers, and asks it.
func ExampleDNS() {
	server, stop := exampleServer()
	defer stop()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	resolve, err := client.NewDNS(client.DNSOptions{
		Schemes: schemes,
		Servers: []client.NameServer{client.PlainServer(server)}, // leave it out to ask the system's
		Roots:   map[string]string{"urn": "urn.example."},
		Now:     time.Now,
		Random:  rand.IntN,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := resolve.Resolve(context.Background(), client.Request{
		Name:   "urn:paradisec:AB1:001:A",
		Accept: []ddds.Preference{{Range: "audio/mpeg", Q: 1000}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Location)
	fmt.Println(res.Type)
	// Output:
	// https://store.example/a.wav
	// audio/wav
}

// exampleServer is a name server with two rules.
func exampleServer() (addr netip.AddrPort, stop func()) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
	}
	handler := func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		for _, rule := range []string{
			`paradisec.urn.example. 60 NAPTR 100 10 "RES:https" "N2L:text/html" "!.*!https://data.example/a.html!" .`,
			`paradisec.urn.example. 60 NAPTR 100 20 "RES:https" "N2L:audio/wav" "!.*!https://store.example/a.wav!" .`,
		} {
			if r, err := dns.NewRR(rule); err == nil {
				m.Answer = append(m.Answer, r)
			}
		}
		_ = w.WriteMsg(m)
	}
	begun := make(chan struct{})
	s := &dns.Server{PacketConn: socket, Handler: dns.HandlerFunc(handler), NotifyStartedFunc: func() { close(begun) }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.ActivateAndServe()
	}()
	<-begun
	return socket.LocalAddr().(*net.UDPAddr).AddrPort(), func() {
		_ = s.Shutdown()
		<-done
	}
}
