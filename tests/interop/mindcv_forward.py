# SPDX-License-Identifier: Apache-2.0
"""A model's output in evaluation for a fixed input: `mindcv_forward.py MODEL FOLDER save|load`.

Under MindSpore (`save`) it makes the checkpoint and the output; under Undertow (`load`) it loads the checkpoint and
prints how far its own output is, as JSON. The weights are moved from their start so that no layer is all zeros or ones.
"""

import json
import sys

import mindspore as ms
import numpy as np
from mindcv import create_model


def main(name, folder, action):
    path = f"{folder}/{name}.ckpt"
    net = create_model(name, num_classes=10)
    net.set_train(False)
    rng = np.random.default_rng(5)
    images = rng.normal(size=(2, 3, 224, 224)).astype(np.float32)
    if action == "save":
        for p in net.get_parameters():
            value = p.asnumpy()
            if np.issubdtype(value.dtype, np.floating):
                noise = rng.uniform(0.9, 1.1, value.shape)
                p.set_data(ms.Tensor((value * noise + (0.02 if p.name.endswith("beta") else 0)).astype(value.dtype)))
        ms.save_checkpoint(net, path)
        np.save(f"{folder}/{name}.npy", net(ms.Tensor(images)).asnumpy())
        return
    missing, unused = ms.load_param_into_net(net, ms.load_checkpoint(path))
    theirs = np.load(f"{folder}/{name}.npy")
    ours = net(ms.Tensor(images)).asnumpy()
    far = float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))
    print(json.dumps({"missing": missing, "unused": unused, "far": far, "spread": float(theirs.std())}))


main(*sys.argv[1:])
