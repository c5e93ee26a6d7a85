package main

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
)

// names are the camera's photos. It hands out the slow one slowly.
var names = []string{"lighthouse.jpg", "harbour.jpg", "island.jpg", "sunset.jpg"}

const slow = "harbour.jpg"

// takePhoto returns the i-th photo as a JPEG file: a sun over the sea, each time in another colour.
func takePhoto(i int) []byte {
	const width, height = 1200, 900
	photo := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			light := uint8(255 * math.Exp(-math.Hypot(float64(x-250*(i+1)), float64(y-400))/300))
			c := color.RGBA{R: light, G: light / uint8(i+1), B: uint8(80 + 30*i), A: 255}
			if y > 550 { // the sea, with waves
				c.B += uint8(25 * (1 + math.Sin(float64(x)/40+float64(y*y)/3000)))
			}
			photo.SetRGBA(x, y, c)
		}
	}
	var file bytes.Buffer
	_ = jpeg.Encode(&file, photo, nil) // a buffer takes all
	return file.Bytes()
}
