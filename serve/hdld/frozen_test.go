package hdld

import (
	"bytes"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// TestFrozen: an archive answers with what is for the public, and refuses what administrators ask for before they prove who they are.
func TestFrozen(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Frozen = stele.Frozen("names.example.org/.log", time.Now()) })
	v := hdl.Latest()
	ask := func(op hdl.Operation, body []byte) hdl.Message {
		m := hdl.Message{Envelope: hdl.Envelope{Version: v, Suggested: v, Request: 1}, Header: hdl.Header{Operation: op, SiteSerial: hdl.UnknownSerial}, Body: body}
		return f.said(&call{raw: m.Append(nil), via: viaTCP})
	}
	const name = "20.500.99999/ABC-1"
	if got := ask(hdl.Resolve, (&hdl.ResolveRequest{Handle: []byte(name), Types: [][]byte{[]byte("URL")}}).Append(nil, v)); got.Header.Response != hdl.Success {
		t.Errorf("resolve: %d", got.Header.Response)
	}
	handle := (&hdl.HandleBody{Handle: []byte(name)}).Append(nil, v)
	values := (&hdl.ValuesBody{Handle: []byte("20.500.99999/NEW"), Values: []hdl.Value{{Index: 1, Type: []byte("URL"), Data: []byte("https://example.org/")}}}).Append(nil, v)
	for op, body := range map[hdl.Operation][]byte{
		hdl.CreateHandle: values, hdl.AddValue: values, hdl.ModifyValue: values, hdl.DeleteHandle: handle, hdl.HomePrefix: handle, hdl.UnhomePrefix: handle,
		hdl.ListHandles: (&hdl.HandleBody{Handle: []byte("0.NA/20.500.99999")}).Append(nil, v),
		hdl.RemoveValue: (&hdl.RemoveRequest{Handle: []byte(name), Indexes: []uint32{1}}).Append(nil, v),
	} {
		if got := ask(op, body); got.Header.Response != hdl.NotPermitted || !bytes.Contains(got.Body, []byte("a frozen archive of names.example.org/.log")) {
			t.Errorf("operation %d: %d, %q", op, got.Header.Response, got.Body)
		}
	}
}
