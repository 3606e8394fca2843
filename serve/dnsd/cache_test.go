package dnsd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// stored is an answer that can be told from others. A third of it is like others.
func stored(n, size int) *packed {
	p := &packed{rcode: uint8(n % 16), aa: n%2 == 0, answers: uint16(n%7 + 1), authority: uint16(n % 3), additional: uint16(n % 5),
		extra: size / 2, serial: size / 3, zone: uint16(n % 3), body: make([]byte, size)}
	r := rand.New(rand.NewPCG(uint64(n), 0))
	for i := range p.body {
		p.body[i] = byte(i)
		if i > size/3 {
			p.body[i] = byte(r.Uint32())
		}
	}
	return p
}

// TestCacheTellsTheTruth puts and drops at random: the cache may have forgotten
// anything, but what it finds is the last that was put.
func TestCacheTellsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(0) // as small as can be: things are overwritten
		defer c.close()
		type key struct {
			name  string
			qtype uint16
		}
		last := make(map[key]*packed)
		found := 0
		for i := range rapid.IntRange(1, 2000).Draw(t, "steps") {
			r := rand.New(rand.NewPCG(uint64(i), rapid.Uint64().Draw(t, "random")))
			k := key{fmt.Sprintf("\x05%05d\x00", r.IntN(300)), uint16(r.IntN(3))}
			hash := c.hash([]byte(k.name))
			switch r.IntN(10) {
			case 0:
				c.drop(hash)
				for q := range uint16(3) {
					delete(last, key{k.name, q})
				}
			case 1, 2, 3, 4:
				p := stored(r.IntN(1<<16), r.IntN(600)&^1)
				c.put([]byte(k.name), hash, k.qtype, c.epoch(hash), p)
				last[k] = p
			default:
				dst, p, ok := c.get([]byte("before"), []byte(k.name), hash, k.qtype, maxMessage)
				want := last[k]
				if !ok {
					continue
				}
				found++
				if want == nil {
					t.Fatalf("found %+v, which was dropped", p)
				}
				if string(dst) != "before"+string(want.body) || p.rcode != want.rcode || p.aa != want.aa || p.answers != want.answers ||
					p.authority != want.authority || p.additional != want.additional || p.zone != want.zone || p.extra != want.extra || p.serial != want.serial {
					t.Fatalf("found %+v, want %+v", p, want)
				}
			}
		}
	})
}

func TestCacheKeepsMost(t *testing.T) {
	c := newCache(4 << 20)
	defer c.close()
	const n = 10_000 // of 300 bytes: less than fits
	name := func(i int) []byte { return fmt.Appendf(nil, "\x08%08d\x00", i) }
	for i := range n {
		c.put(name(i), c.hash(name(i)), 35, 0, stored(i, 250))
	}
	found := 0
	for i := range n {
		if _, _, ok := c.get(nil, name(i), c.hash(name(i)), 35, maxMessage); ok {
			found++
		}
	}
	if found < n*99/100 {
		t.Errorf("%d of %d are found", found, n)
	}
	// What does not exist does not push them out.
	for i := range 4 * n {
		p := stored(i, 100)
		p.answers = 0
		c.put(name(n+i), c.hash(name(n+i)), 35, 0, p)
	}
	still := 0
	for i := range n {
		if _, _, ok := c.get(nil, name(i), c.hash(name(i)), 35, maxMessage); ok {
			still++
		}
	}
	if still != found {
		t.Errorf("%d of %d are left after a flood", still, found)
	}
}

// TestCacheInTurn asks for twice as many as fit, always in the same order, which the
// overwriting of the oldest alone would never find.
func TestCacheInTurn(t *testing.T) {
	c := newCache(1 << 20)
	defer c.close()
	const n = 6000 // of 300 bytes, or a little less
	found := 0
	for range 5 {
		found = 0
		for i := range n {
			name := fmt.Appendf(nil, "\x08%08d\x00", i)
			if _, _, ok := c.get(nil, name, c.hash(name), 35, maxMessage); ok {
				found++
				continue
			}
			c.put(name, c.hash(name), 35, 0, stored(i, 260))
		}
	}
	if found < n/4 {
		t.Errorf("%d of %d are found", found, n)
	}
}

// TestDictionaries shortens answers like those of a zone, and others.
func TestDictionaries(t *testing.T) {
	d := newDictionaries()
	answer := func(i int) []byte {
		return fmt.Appendf(nil, "%[1]s some text that all of them have, and then %06[2]d, and %[1]s once more %06[2]d", strings.Repeat("the beginning ", 10), i)
	}
	sum := 0
	for i := range 1000 {
		body := answer(i)
		short, number := d.shorten(7, body, nil)
		if number == 0 {
			if string(short) != string(body) {
				t.Fatalf("%d: %q became %q without a dictionary", i, body, short)
			}
			continue
		}
		sum += len(short)
		back, ok := d.lengthen([]byte("before"), short, number, len(body))
		if !ok || string(back) != "before"+string(body) {
			t.Fatalf("%d: %q became %q (%v)", i, body, back, ok)
		}
		if _, ok := d.lengthen(nil, short, number, len(body)+1); ok {
			t.Fatal("a wrong length is not noticed")
		}
	}
	if whole := 1000 * len(answer(0)); sum == 0 || sum > whole/5 {
		t.Errorf("%d bytes of %d", sum, whole)
	}
	for topic := range uint32(2 * maxDictionaries) {
		for range enoughAnswers + 1 {
			d.shorten(topic, answer(int(topic)), nil)
		}
	}
	if n := len(*d.list.Load()) - 1; n != maxDictionaries {
		t.Errorf("%d dictionaries, want %d", n, maxDictionaries)
	}
	if _, ok := d.lengthen(nil, []byte("x"), 200, 1); ok {
		t.Error("a dictionary that there is not was used")
	}
}

// TestCacheMakingDuringAChange puts an answer that was made of what there was before.
func TestCacheMakingDuringAChange(t *testing.T) {
	c := newCache(0)
	defer c.close()
	name := []byte("\x01a\x00")
	for _, drop := range []func(){func() { c.drop(c.hash(name)) }, c.dropAll} {
		epoch := c.epoch(c.hash(name))
		drop()
		c.put(name, c.hash(name), 1, epoch, stored(1, 100))
		if _, _, ok := c.get(nil, name, c.hash(name), 1, maxMessage); ok {
			t.Error("an answer from before the change is found")
		}
		c.put(name, c.hash(name), 1, c.epoch(c.hash(name)), stored(1, 100))
		if _, _, ok := c.get(nil, name, c.hash(name), 1, maxMessage); !ok {
			t.Error("an answer from after the change is not found")
		}
	}
	c.put(name, c.hash(name), 2, c.epoch(c.hash(name)), stored(1, 60_000))
	if _, _, ok := c.get(nil, name, c.hash(name), 2, maxMessage); ok {
		t.Error("an answer that takes most of a shard is kept")
	}
}

// TestCacheAtOnce is for the race detector, and closes the cache under its users.
func TestCacheAtOnce(t *testing.T) {
	c := newCache(0)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 5000 {
				name := fmt.Appendf(nil, "\x03%03d\x00", (i*7+g)%500)
				h := c.hash(name)
				if dst, _, ok := c.get(nil, name, h, 1, maxMessage); ok {
					for _, b := range dst[1:] {
						if b != dst[0] {
							t.Errorf("half of one answer and half of another: %x", dst)
							return
						}
					}
				}
				c.put(name, h, 1, c.epoch(h), &packed{answers: 1, body: bytes.Repeat([]byte{byte(i)}, 1+i%300)})
				if i%100 == 0 {
					c.drop(h)
				}
				if i == 4500 && g == 0 {
					c.close()
				}
			}
		})
	}
	all.Wait()
	if _, _, ok := c.get(nil, []byte("\x03001\x00"), c.hash([]byte("\x03001\x00")), 1, maxMessage); ok {
		t.Error("something is found after the end")
	}
}
