package hdl_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stele-id/stele/wire/hdl"
)

// FuzzMessage reads anything as a message. What is read is written to the same octets, and so are bodies.
func FuzzMessage(f *testing.F) {
	for _, rec := range whole(f) {
		f.Add(rec.octets)
	}
	key := []byte("0123456789abcdef0123456789abcdef")
	public := publicKey(f, "srv_pubkey")
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := hdl.Parse(b)
		if err != nil {
			return
		}
		if got := m.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x, want %x", got, b)
		}
		if m.Sealed != nil {
			if m.Open(hdl.AES, key) == nil {
				t.Log("opened")
			}
			return
		}
		if got, err := recode(&m); err == nil && !bytes.Equal(got, m.Body) {
			t.Fatalf("body %x, want %x", got, m.Body)
		}
		if m.VerifyMAC(key) == nil {
			t.Fatal("a code is right that the holder of the key did not make")
		}
		_ = m.VerifySignature(public) // the seeds have signatures of this key
	})
}

func FuzzValue(f *testing.F) {
	v := vectors(f, "encodings.txt")
	f.Add(v["value_url"])
	f.Add(v["value_absolute_ttl_with_reference_perms_9"])
	f.Add(v["global_values"][4:])
	f.Add(v["hs_admin_all"])
	f.Add(v["hs_vlist"])
	f.Fuzz(func(t *testing.T, b []byte) {
		if value, err := hdl.ParseValue(b); err == nil && !bytes.Equal(value.Append(nil), b) {
			t.Fatalf("%x, want %x", value.Append(nil), b)
		}
		if values, err := hdl.ParseValueList(b, nil); err == nil && !bytes.Equal(hdl.AppendValues(nil, values), b) {
			t.Fatalf("%x, want %x", hdl.AppendValues(nil, values), b)
		}
		if admin, err := hdl.ParseAdmin(b); err == nil && !bytes.Equal(admin.Append(nil), b) {
			t.Fatalf("%x, want %x", admin.Append(nil), b)
		}
		if refs, err := hdl.ParseReferences(b); err == nil && !bytes.Equal(hdl.AppendReferences(nil, refs), b) {
			t.Fatalf("%x, want %x", hdl.AppendReferences(nil, refs), b)
		}
	})
}

func FuzzSite(f *testing.F) {
	v := vectors(f, "encodings.txt")
	f.Add(v["hs_site"])
	f.Add(v["hs_site_ipv6_no_key_hashfilter"])
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := hdl.ParseSite(b)
		if err != nil {
			return
		}
		if got := s.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x, want %x", got, b)
		}
		if server := s.ServerFor(b); (server == nil) != (len(s.Servers) == 0) {
			t.Fatal("a site with servers has none for a handle")
		}
		for i := range s.Servers {
			_ = s.Servers[i].Addr().String()
		}
	})
}

// FuzzPublicKey reads anything as a key. Numbers may have been written with more zeros, so that a key that is read is
// compared after it was written once.
func FuzzPublicKey(f *testing.F) {
	v, sessions := vectors(f, "encodings.txt"), vectors(f, "sessions.txt")
	f.Add(v["hs_pubkey_rsa"])
	f.Add(v["hs_pubkey_dsa"])
	f.Add(sessions["client_dh_pub_key"])
	answer := vectors(f, "auth.txt")["pubkey_answer_SHA1withDSA"]
	p, g := hdl.OakleyGroup()
	side, err := hdl.NewDH(p, g, bytes.NewReader(sessions["xa"]))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := hdl.ParsePublicKey(b)
		if err != nil {
			return
		}
		once := k.Append(nil)
		again, err := hdl.ParsePublicKey(once)
		if err != nil || !bytes.Equal(again.Append(nil), once) {
			t.Fatalf("%x: %v", once, err)
		}
		if hdl.VerifyKeyAnswer(&k, answer, []byte("another"), nil) == nil {
			t.Fatal("an answer to another challenge is right")
		}
		if k.DH != nil {
			_, _ = side.Shared(k.DH)
		}
	})
}

func FuzzKeyFile(f *testing.F) {
	v := vectors(f, "encodings.txt")
	for _, name := range []string{"privkey_file_rsa", "privkey_file_dsa", "enc_method0", "enc_method2", "enc_method3", "enc_method4"} {
		f.Add(v[name])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 28 && b[3] > 2 { // iterations: up to 255, so that the target is quick
			b = bytes.Clone(b)
			copy(b[24:], []byte{0, 0, 0})
		}
		k, err := hdl.ParseKeyFile(b, []byte("passphrase"))
		if err != nil {
			return
		}
		file := hdl.AppendKeyFile(nil, &k)
		if again, err := hdl.ParseKeyFile(file, nil); err != nil || !bytes.Equal(hdl.AppendKeyFile(nil, &again), file) {
			t.Fatalf("%x: %v", file, err)
		}
	})
}

// FuzzCollector gives datagrams of any content to a collector: its bounds hold, and what it returns is a message by length.
func FuzzCollector(f *testing.F) {
	all, _ := recordings(f)
	var stream []byte
	for _, rec := range all {
		if rec.transport != "UDP" {
			continue
		}
		stream = append(binary.BigEndian.AppendUint16(stream, uint16(len(rec.octets))), rec.octets...)
		if len(stream) > 3000 {
			f.Add(stream)
			stream = nil
		}
	}
	limits := hdl.Limits{Messages: 4, Octets: 4000, Lifetime: 5 * time.Second}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := hdl.NewCollector(limits)
		now := noon
		for len(b) >= 2 {
			n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			datagram := b[2 : 2+n]
			b = b[2+n:]
			now = now.Add(time.Duration(n) * time.Millisecond)
			got, err := c.Add(now, netip.AddrPortFrom(sender.Addr(), uint16(n%3)), datagram)
			if messages, octets := c.Waiting(); messages > limits.Messages || octets > limits.Octets {
				t.Fatalf("%d messages, %d octets", messages, octets)
			}
			if got == nil {
				continue
			}
			e, parsed := hdl.ParseEnvelope(got)
			if err != nil || parsed != nil || int(e.Length) != len(got)-hdl.EnvelopeSize || e.Sequence != 0 {
				t.Fatalf("%x: %v, %v", got, err, parsed)
			}
		}
	})
}

// FuzzAnswer verifies anything as an answer to a challenge.
func FuzzAnswer(f *testing.F) {
	v := vectors(f, "auth.txt")
	for name, b := range v {
		if name == "seckey_answer_2.0" || len(b) > 60 {
			continue
		}
		f.Add(b)
	}
	f.Add(v["pubkey_answer_SHA256withRSA"])
	rsaKey, dsaKey := publicKey(f, "hs_pubkey_rsa"), publicKey(f, "hs_pubkey_dsa")
	f.Fuzz(func(t *testing.T, b []byte) {
		nonce, digest := []byte("a nonce of ours."), make([]byte, 32)
		if hdl.VerifySecretAnswer(v211, b, []byte("unguessable"), nonce, digest) == nil ||
			hdl.VerifyKeyAnswer(rsaKey, b, nonce, digest) == nil || hdl.VerifyKeyAnswer(dsaKey, b, nonce, digest) == nil {
			t.Fatalf("%x is right", b)
		}
	})
}
