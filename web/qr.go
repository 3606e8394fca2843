package web

import (
	"fmt"
	"strings"

	"rsc.io/qr"

	"github.com/stele-id/stele"
)

// maxQR is the longest text that becomes a QR code, in bytes. A longer one would
// have more dots than a telephone sees on a page.
const maxQR = 600

// quiet is the width of the margin around a QR code, in dots (ISO/IEC 18004, 6.3.8).
const quiet = 4

// QR is a QR code as the path of an SVG image. The zero QR is not a code.
type QR struct {
	Size int    // of a side, in dots, with the margin
	Path string // of the dark dots
}

// NewQR makes the QR code of a text. The text may have 600 bytes; a longer one is an error of
// Kind Invalid, and the page is complete without the code.
func NewQR(text string) (QR, error) {
	code, err := encode(text)
	if err != nil {
		return QR{}, err
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			begin := x
			for code.Black(x, y) {
				x++
			}
			if n := x - begin; n > 0 {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", begin+quiet, y+quiet, n, n)
			}
		}
	}
	return QR{Size: code.Size + 2*quiet, Path: path.String()}, nil
}

// QRImage makes the QR code of a text as a PNG image. The text is as long as that of [NewQR].
func QRImage(text string) ([]byte, error) {
	code, err := encode(text)
	if err != nil {
		return nil, err
	}
	return code.PNG(), nil
}

// encode makes the QR code of a text that is neither empty nor too long.
func encode(text string) (*qr.Code, error) {
	if text == "" || len(text) > maxQR {
		return nil, &stele.Error{Op: "make QR code", Kind: stele.Invalid,
			Err: stele.Messagef("qr-code.text-size-wrong", "the text has {bytes} bytes; give 1 to {limit}", len(text), maxQR)}
	}
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil, &stele.Error{Op: "make QR code", Kind: stele.Invalid, Err: err}
	}
	return code, nil
}
