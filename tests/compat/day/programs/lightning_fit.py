# compat: Lightning: a model fitted and tested; its loss is about the same
# modules: lightning torch
import lightning
import torch
from printed import about


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        self.last = 0.0

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.last = loss.detach()
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    torch.manual_seed(1)
    inputs = torch.rand(512, 32)
    data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
    trainer = lightning.Trainer(
        accelerator="gpu",
        devices=1,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Model()
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=64))
    about("loss", float(model.last), 0.05)


if __name__ == "__main__":
    main()
