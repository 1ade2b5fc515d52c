# compat: a vision transformer (timm), trained with mixed precision and a scaler; its loss is about the same
# modules: torch timm
import timm
import torch
from printed import about


def main():
    torch.manual_seed(1)
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, num_classes=10, img_size=96)
    images, labels = torch.rand(16, 3, 96, 96).cuda(), torch.randint(0, 10, (16,)).cuda()
    model.cuda().train()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.01), torch.amp.GradScaler("cuda", init_scale=1024.0)
    for _ in range(8):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    about("loss", loss.item(), 0.05)
    print("scale", scaler.get_scale())


if __name__ == "__main__":
    main()
