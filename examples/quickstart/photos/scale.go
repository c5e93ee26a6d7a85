package photos

import (
	"image"
	"image/color"
	"image/draw"
)

// scale returns a smaller copy of a picture: each of its pixels is the average of those that it stands for.
func scale(picture image.Image, width int) image.Image {
	bounds := picture.Bounds()
	from := image.NewRGBA(image.Rect(0, 0, bounds.Dx(), bounds.Dy()))
	draw.Draw(from, from.Bounds(), picture, bounds.Min, draw.Src)

	width = max(1, min(width, bounds.Dx()))
	height := max(1, width*bounds.Dy()/bounds.Dx())
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			to.SetRGBA(x, y, average(from, image.Rect(
				x*bounds.Dx()/width, y*bounds.Dy()/height, (x+1)*bounds.Dx()/width, (y+1)*bounds.Dy()/height,
			)))
		}
	}
	return to
}

func average(picture *image.RGBA, r image.Rectangle) color.RGBA {
	var red, green, blue, alpha int
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := picture.RGBAAt(x, y)
			red += int(c.R)
			green += int(c.G)
			blue += int(c.B)
			alpha += int(c.A)
		}
	}
	n := r.Dx() * r.Dy()
	return color.RGBA{R: uint8(red / n), G: uint8(green / n), B: uint8(blue / n), A: uint8(alpha / n)}
}
