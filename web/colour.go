package web

import (
	"math"
	"strconv"

	"github.com/stele-id/stele"
)

// contrast returns the ratio of two colours' luminances (WCAG 2.2, 1.4.3).
func contrast(a, b string) (float64, error) {
	x, err := luminance(a)
	if err != nil {
		return 0, err
	}
	y, err := luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05), err
}

func luminance(colour string) (sum float64, err error) {
	if !hexColour.MatchString(colour) {
		return 0, stele.Messagef("face.colour-invalid", `"{colour}" is not a colour; write it as in #8a3b12`, colour)
	}
	rgb, err := strconv.ParseUint(colour[1:], 16, 32)
	if err != nil {
		return 0, err
	}
	for i, weight := range [...]float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb>>(16-8*i)&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum, nil
}
