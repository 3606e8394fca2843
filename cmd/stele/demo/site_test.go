package demo

import (
	"encoding/binary"
	"net/http"
	"testing"
	"time"
)

// TestSounds: the sounds have the format that they claim.
func TestSounds(t *testing.T) {
	tone := tone()
	if string(tone[:4]) != "RIFF" || string(tone[8:16]) != "WAVEfmt " || string(tone[36:40]) != "data" ||
		int(binary.LittleEndian.Uint32(tone[4:])) != len(tone)-8 || int(binary.LittleEndian.Uint32(tone[40:])) != len(tone)-44 {
		t.Errorf("this is not WAV: % x", tone[:44])
	}
	crossings := 0
	for i := 46; i+1 < len(tone); i += 2 {
		before, now := int16(binary.LittleEndian.Uint16(tone[i-2:])), int16(binary.LittleEndian.Uint16(tone[i:]))
		if before < 0 && now >= 0 {
			crossings++
		}
	}
	if crossings < 430 || crossings > 440 { // the last of them are silent
		t.Errorf("the tone has %d periods in its second, and should have 440", crossings)
	}
	if got := silence(); got[0] != 0xff || got[417] != 0xff || len(got) != 38*417 {
		t.Error("this is not MP3")
	}
	request, err := http.NewRequest(http.MethodGet, "http://site.example/a.wav", nil)
	if err != nil {
		t.Fatal(err)
	}
	if mediaType, _ := (site{begun: time.Unix(0, 0)}).content(request); mediaType != "audio/wav" {
		t.Errorf("the type is %s", mediaType)
	}
}
