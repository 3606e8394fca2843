package hdl_test

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/wire/hdl"
)

func octets(t *rapid.T, name string, most int) []byte {
	return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, name)...)
}

func drawReference(t *rapid.T) hdl.Reference {
	return hdl.Reference{Handle: string(octets(t, "handle", 40)), Index: rapid.Uint32().Draw(t, "index")}
}

func drawValue(t *rapid.T) hdl.Value {
	v := hdl.Value{
		Index: rapid.Uint32().Draw(t, "index"), Timestamp: rapid.Uint32().Draw(t, "timestamp"),
		TTLType: rapid.Byte().Draw(t, "kind"), TTL: rapid.Uint32().Draw(t, "ttl"), Permissions: rapid.Byte().Draw(t, "permissions"),
		Type: octets(t, "type", 20), Data: octets(t, "data", 200),
	}
	for range rapid.IntRange(0, 3).Draw(t, "references") {
		v.References = append(v.References, drawReference(t))
	}
	return v
}

func drawValues(t *rapid.T) []hdl.Value {
	values := make([]hdl.Value, rapid.IntRange(0, 5).Draw(t, "values"))
	for i := range values {
		values[i] = drawValue(t)
	}
	return values
}

func drawStrings(t *rapid.T) [][]byte {
	list := make([][]byte, rapid.IntRange(0, 5).Draw(t, "strings"))
	for i := range list {
		list[i] = octets(t, "string", 20)
	}
	return list
}

func drawIndexes(t *rapid.T) []uint32 {
	return append([]uint32{}, rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "indexes")...)
}

// drawBody returns an operation, a response code and a body that fits both.
func drawBody(t *rapid.T, v hdl.Version) (hdl.Operation, hdl.ResponseCode, hdl.Body) {
	op := func(list ...hdl.Operation) hdl.Operation { return rapid.SampledFrom(list).Draw(t, "operation") }
	rest := rapid.SampledFrom([][]byte{nil, {0, 0}}).Draw(t, "rest")
	switch rapid.IntRange(0, 15).Draw(t, "body") {
	case 0:
		return hdl.Resolve, 0, &hdl.ResolveRequest{Handle: octets(t, "handle", 40), Indexes: drawIndexes(t), Types: drawStrings(t)}
	case 1:
		return op(hdl.GetSiteInfo, hdl.DeleteHandle, hdl.ListHandles, hdl.ListDerived, hdl.HomePrefix, hdl.UnhomePrefix, hdl.ListPrefixes, hdl.EndSession), 0,
			&hdl.HandleBody{Handle: octets(t, "handle", 40)}
	case 2:
		return op(hdl.CreateHandle, hdl.AddValue, hdl.ModifyValue), 0, &hdl.ValuesBody{Handle: octets(t, "handle", 40), Values: drawValues(t)}
	case 3:
		return hdl.RemoveValue, 0, &hdl.RemoveRequest{Handle: octets(t, "handle", 40), Indexes: drawIndexes(t)}
	case 4:
		return hdl.AnswerChallenge, 0, &hdl.AnswerRequest{Type: octets(t, "type", 10), Identity: drawReference(t), Answer: octets(t, "answer", 50)}
	case 5:
		return hdl.VerifyAnswer, 0, &hdl.VerifyRequest{Identity: drawReference(t), Nonce: octets(t, "nonce", 20), Digest: octets(t, "digest", 32), Answer: octets(t, "answer", 50)}
	case 6:
		return hdl.SetUpSession, 0, &hdl.SessionRequest{Mode: 4, Timeout: rapid.Uint32().Draw(t, "timeout"), Identity: drawReference(t), Key: octets(t, "key", 50), Rest: rest}
	case 7:
		return hdl.SetUpSession, 0, &hdl.SessionRequest{Mode: rapid.Uint16Range(0, 3).Draw(t, "mode"), Timeout: rapid.Uint32().Draw(t, "timeout"), Rest: octets(t, "rest", 50)}
	case 8:
		return hdl.Resolve, hdl.Success, &hdl.ValuesBody{Handle: octets(t, "handle", 40), Values: drawValues(t)}
	case 9:
		return op(hdl.ListHandles, hdl.ListDerived, hdl.ListPrefixes), hdl.Success, &hdl.NamesBody{Names: drawStrings(t)}
	case 10:
		return hdl.VerifyAnswer, hdl.Success, hdl.VerifiedBody{Valid: rapid.Bool().Draw(t, "valid")}
	case 11:
		b := &hdl.SessionResponse{Mode: 4, Algorithm: hdl.DES, Key: octets(t, "key", 50), Rest: rest}
		if !v.Before(4) {
			b.Algorithm = hdl.Algorithm(rapid.Uint32().Draw(t, "algorithm"))
		}
		return hdl.SetUpSession, hdl.Success, b
	case 12:
		b := &hdl.ChallengeBody{Nonce: octets(t, "nonce", 20)}
		if v.Before(1) {
			b.MD5 = octets(t, "digest", 16)
		}
		return hdl.CreateHandle, hdl.Challenged, b
	case 13:
		b := &hdl.ErrorBody{Text: octets(t, "text", 50)}
		if rapid.Bool().Draw(t, "with indexes") {
			b.Indexes = drawIndexes(t)
		}
		return hdl.Resolve, rapid.SampledFrom([]hdl.ResponseCode{2, 3, 100, 301, 500}).Draw(t, "code"), b
	case 14:
		b := &hdl.ReferralBody{Handle: octets(t, "handle", 40)}
		if rapid.Bool().Draw(t, "with values") {
			b.Values = drawValues(t)
		}
		return hdl.Resolve, rapid.SampledFrom([]hdl.ResponseCode{302, 303}).Draw(t, "code"), b
	}
	return op(hdl.DeleteHandle, hdl.AddValue, hdl.CreateHandle, hdl.EndSession), hdl.Success, hdl.Empty{}
}

// TestMessagesRoundTrip: what is written is read again, in every version.
func TestMessagesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := hdl.Version{Major: 2, Minor: rapid.Uint8Range(0, 11).Draw(t, "minor")}
		want := hdl.Message{Envelope: hdl.Envelope{
			Version: version, Truncated: rapid.Bool().Draw(t, "truncated"), Suggested: hdl.Version{Major: rapid.Uint8Range(0, 31).Draw(t, "major"), Minor: rapid.Byte().Draw(t, "minor")},
			Session: rapid.Uint32().Draw(t, "session"), Request: rapid.Uint32().Draw(t, "request"),
		}}
		operation, response, body := drawBody(t, version)
		want.Header = hdl.Header{Operation: operation, Response: response, SiteSerial: rapid.Uint16().Draw(t, "serial"), Recursion: rapid.Byte().Draw(t, "recursion"),
			Reserved: rapid.Byte().Draw(t, "reserved"), Expiration: rapid.Uint32().Draw(t, "expiration"), Flags: hdl.Flags(rapid.Uint32().Draw(t, "flags")) &^ hdl.ReturnDigest}
		var digest hdl.Digest
		if response != 0 && !version.Before(1) && rapid.Bool().Draw(t, "digest") {
			want.Header.Flags |= hdl.ReturnDigest
			digest = hdl.RequestDigest(hdl.DigestFor(version), &want)
		}
		want.Body = body.Append(digest.Append([]byte{}), version)
		if rapid.Bool().Draw(t, "credential") {
			want.AddMAC([]byte("0123456789abcdef"), rapid.Uint32().Draw(t, "counter"))
		}
		b := want.Append(nil)
		got, err := hdl.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if again := got.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x, want %x", again, b)
		}
		if got.Credential != nil && got.VerifyMAC([]byte("0123456789abcdef")) != nil {
			t.Fatal("the code is wrong")
		}
		var read hdl.Body
		if response == 0 {
			read, err = hdl.ParseRequest(&got)
		} else {
			var d hdl.Digest
			d, read, err = hdl.ParseResponse(&got)
			if d.Code != digest.Code || !bytes.Equal(d.Sum, digest.Sum) {
				t.Fatalf("digest %v, want %v", d, digest)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if again := read.Append(digest.Append(nil), version); !bytes.Equal(again, want.Body) {
			t.Fatalf("%x, want %x", again, want.Body)
		}
		if v, ok := body.(*hdl.ValuesBody); ok && len(v.Values) > 0 && !reflect.DeepEqual(read, v) {
			t.Fatalf("%+v, want %+v", read, v)
		}
	})
}

// TestSealRoundTrip: what is encrypted is decrypted, in both forms.
func TestSealRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom([]hdl.Algorithm{hdl.DES, hdl.TripleDES, hdl.AES}).Draw(t, "algorithm")
		key := bytes.Repeat([]byte("kEy4567!"), 4)[:map[hdl.Algorithm]int{hdl.DES: 8, hdl.TripleDES: 24, hdl.AES: 32}[a]]
		m := hdl.Message{Envelope: hdl.Envelope{Version: hdl.Version{Major: 2, Minor: rapid.Uint8Range(1, 11).Draw(t, "minor")}}, Body: octets(t, "body", 100)}
		if err := m.Seal(a, key, make([]byte, a.BlockSize())); err != nil {
			t.Fatal(err)
		}
		got, err := hdl.Parse(m.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Open(a, key); err != nil || !bytes.Equal(got.Body, m.Body) {
			t.Fatalf("%x, %v", got.Body, err)
		}
	})
}

// TestSiteRoundTrip: a site that is written is read again.
func TestSiteRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := hdl.Site{Version: v211, Serial: rapid.Uint16().Draw(t, "serial"), Flags: rapid.Byte().Draw(t, "flags"),
			HashOption: hdl.HashOption(rapid.Byte().Draw(t, "option")), HashFilter: octets(t, "filter", 5)}
		for range rapid.IntRange(0, 3).Draw(t, "attributes") {
			s.Attributes = append(s.Attributes, hdl.Attribute{Name: string(octets(t, "name", 5)), Value: string(octets(t, "value", 5))})
		}
		for range rapid.IntRange(0, 3).Draw(t, "servers") {
			srv := hdl.Server{ID: rapid.Uint32().Draw(t, "id"), Address: [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")), Key: octets(t, "key", 30)}
			for range rapid.IntRange(0, 3).Draw(t, "interfaces") {
				srv.Interfaces = append(srv.Interfaces, hdl.Interface{Type: 3, Protocol: hdl.TCP, Port: rapid.Uint32().Draw(t, "port")})
			}
			s.Servers = append(s.Servers, srv)
		}
		if got, err := hdl.ParseSite(s.Append(nil)); err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("%+v, %v; want %+v", got, err, s)
		}
	})
}
